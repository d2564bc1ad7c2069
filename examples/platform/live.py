"""The platform where it runs: the controllers of sites.py, unchanged, on a control plane with drivers.

    python examples/platform/live.py FOLDER

starts a control plane in this process, makes a Site, shows what came of it, and deletes it again. The folder has the
databases and the zone. `kubectl --kubeconfig …` works against it meanwhile; what to run for longer is
`steersman.run.daemon.ControlPlane` with `Settings(controllers=…, drivers=…)`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from drivers import Databases as DatabaseService
from drivers import Zone as ZoneService
from sites import DEFINITION, SITE, Databases, Zones, site

import steersman as sm


def main(folder):
    """Makes a Site and deletes it; what was there in between."""
    folder = Path(folder)
    drivers = {"databases": DatabaseService(folder / "databases"), "dns": ZoneService(folder / "zone")}
    with sm.testing.control_plane(controllers=["*", Databases, Zones], definitions=[DEFINITION], drivers=drivers) as cp:
        c = cp.client
        c.create(DEFINITION)
        c.wait(lambda: cp.client.kind("example.com/v1/Site"))
        c.create(site(size=2))
        c.wait(lambda: (c.get(SITE).status or {}).get("record"))
        files = sorted(path.name for path in (folder / "databases").iterdir())
        seen = (c.get(SITE).status, files, (folder / "zone").read_text())
        c.delete(SITE)
        c.wait(lambda: c.get(SITE) is None)
    left = list((folder / "databases").iterdir()), (folder / "zone").read_text()
    return *seen, left


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("give a folder for the databases and the zone: python examples/platform/live.py FOLDER")
    for part in main(sys.argv[1]):
        print(part)
