"use strict";
// Shows a saved run. Everything from it is put on the page as text (textContent, createTextNode, attributes of our own
// drawing), never as markup. The shape of the data is that of report/saved_run.py.

const data = JSON.parse(document.getElementById("run").textContent);
const SVG = "http://www.w3.org/2000/svg";
const LANE = 26, LEFT = 40; // pixels between two lanes, and before the first one
const COLOURS = { start: "--start", read: "--read", write: "--write", fault: "--fault", view: "--view" };
const HOW = { read: "--read", missed: "--fault", told: "--view", woken: "--start" };
const SPOTS = { start: "--accent", end: "--write", violated: "--fault", loop: "--view", open: "--start", "": "--soft" };

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const colour = (name) => `var(${name})`;
const button = (text, action, pressed) => el("button", { onclick: action, "aria-pressed": String(!!pressed) }, text);
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

// -- a run: timeline, steps in words, what each changed --------------------------------------------------------------

/** Everything that a step rests on, and itself. */
function ledTo(run, last) {
  const found = new Set(), work = [last];
  while (work.length) {
    const number = work.pop();
    if (found.has(number) || !run.steps[number - 1]) continue;
    found.add(number);
    for (const [cause] of run.steps[number - 1].causes) work.push(cause);
  }
  return found;
}

function showRun(run) {
  const width = LEFT + run.lanes.length * LANE + 20;
  const rows = [], body = el("div", { class: "run" }), why = el("div", { class: "why", hidden: true });
  const lanes = el("div", { class: "lanes run" }, ...run.lanes.map((lane, at) => {
    const name = el("span", { title: lane }, lane);
    name.style.left = `${LEFT + at * LANE}px`;
    return name;
  }));
  lanes.style.height = `${Math.min(132, 28 + 3.6 * Math.max(0, ...run.lanes.map((lane) => lane.length)))}px`;
  const drawing = svg("svg", {});
  let only = null;

  function ask(step, what) {
    only = ledTo(run, step.number);
    why.replaceChildren(
      `Why step ${step.number} did that to ${what}: ${only.size} of ${plural(run.steps.length, "step")}. `,
      button("Show all", () => { only = null; why.hidden = true; light(); }),
    );
    why.hidden = false;
    light();
  }

  function light() {
    run.steps.forEach((step, at) => {
      rows[at].classList.toggle("dim", only !== null && !only.has(step.number));
      rows[at].classList.toggle("mark", only !== null && only.has(step.number));
    });
    draw();
  }

  function draw() {
    const y = rows.map((row) => row.offsetTop + 16);
    const height = rows.length ? rows.at(-1).offsetTop + rows.at(-1).offsetHeight : 0;
    const x = (step) => LEFT + run.lanes.indexOf(step.lane) * LANE;
    drawing.replaceChildren();
    drawing.setAttribute("width", width);
    drawing.setAttribute("height", height);
    run.lanes.forEach((_, at) => drawing.append(svg("line", {
      x1: LEFT + at * LANE, x2: LEFT + at * LANE, y1: 0, y2: height, stroke: colour("--line"),
    })));
    if (run.for_ever && y.length > run.turn) drawing.append(...loop(y[run.turn], y[y.length - 1]));
    run.steps.forEach((step, at) => {
      for (const [cause, how] of step.causes) {
        const from = run.steps[cause - 1];
        if (!from || !HOW[how]) continue;
        const shown = only === null || (only.has(step.number) && only.has(cause));
        const bend = Math.max(x(from), x(step)) + 14;
        drawing.append(svg("path", {
          d: `M${x(from)} ${y[cause - 1]} C${bend} ${y[cause - 1]} ${bend} ${y[at]} ${x(step)} ${y[at]}`,
          fill: "none", stroke: colour(HOW[how]), "stroke-width": 1.4, opacity: shown ? 0.75 : 0.08,
          "stroke-dasharray": how === "missed" ? "4 3" : "none",
        }, title(`step ${cause} ${said(how)} step ${step.number}`)));
      }
    });
    run.steps.forEach((step, at) => drawing.append(dot(step, x(step), y[at], only !== null && !only.has(step.number))));
  }

  function dot(step, x, y, dim) {
    const fill = colour(COLOURS[step.mark] || "--other");
    const square = step.mark === "fault" || step.mark === "write";
    const shape = square
      ? svg("rect", { x: x - 5, y: y - 5, width: 10, height: 10, fill, transform: step.mark === "fault" ? `rotate(45 ${x} ${y})` : "" })
      : svg("circle", { cx: x, cy: y, r: 5, fill });
    if (step.stale) { shape.setAttribute("stroke", colour("--fault")); shape.setAttribute("stroke-width", 3); }
    shape.setAttribute("opacity", dim ? 0.2 : 1);
    shape.append(title(`${step.number}. ${step.text}`));
    shape.addEventListener("click", () => ask(step, step.lane));
    return shape;
  }

  run.steps.forEach((step) => {
    if (run.for_ever && step.number === run.turn + 1) {
      body.append(indented(el("div", { class: "forever" }, run.turn ? "From here on, for ever:" : "From the starting state on, for ever:"), width));
    }
    const row = indented(showStep(step, ask), width);
    rows.push(row);
    body.append(row);
  });
  if (!run.steps.length) body.append(el("p", {}, "In the starting state, before anybody has done anything."));
  if (run.omitted) body.append(indented(el("p", { class: "soft" }, `… and ${plural(run.omitted, "more step")}, not kept in this report`), width));
  body.append(drawing);
  new ResizeObserver(draw).observe(body);
  const box = el("div", {}, legend(), lanes, body, why, showObjects(run, ask));
  requestAnimationFrame(draw);
  return box;
}

function loop(top, bottom) {
  const line = { fill: "none", stroke: colour("--view"), "stroke-width": 2 };
  return [
    svg("path", { ...line, d: `M26 ${bottom} H18 Q10 ${bottom} 10 ${Math.max(bottom - 8, top)} V${top + 8} Q10 ${top} 18 ${top} H25` }),
    svg("path", { ...line, d: `M20 ${top - 5} L26 ${top} L20 ${top + 5}` }),
  ];
}

const said = (how) => ({ read: "wrote what was read in", missed: "had not reached the view of", told: "is told of in", woken: "woke" })[how];
const title = (text) => { const node = svg("title", {}); node.textContent = text; return node; };
function indented(node, width) { node.style.paddingLeft = `${width}px`; return node; }

function showStep(step, ask) {
  const body = el("div", { class: "body" });
  if (step.changes.length || step.outcome) {
    body.append(...step.changes.map((change) => showChange(change, (what) => ask(step, what))));
    if (step.outcome) body.append(el("div", { class: "soft" }, step.outcome));
  }
  const more = el("div", { class: "soft", hidden: true },
    el("div", { class: "label" }, step.label),
    step.call ? el("div", {}, `call: ${step.call}`) : null,
    ...step.seen.map((text) => el("div", {}, `saw ${text}`)),
    ...step.woke.map((text) => el("div", {}, `woke ${text}`)),
  );
  body.append(more);
  return el("div", { class: `step${step.stale ? " stale" : ""}` },
    el("div", { class: "line" },
      el("span", { class: "number" }, `${step.number}.`),
      el("span", { class: "said", title: "what it called, saw and woke", onclick: () => { more.hidden = !more.hidden; } }, step.text),
      step.stale ? el("span", { class: "tag stale" }, "stale read") : null,
      step.mark === "fault" ? el("span", { class: "tag fault" }, "fault") : null,
    ),
    body,
  );
}

/** What happened to an object; `ask` is called with what somebody wants to know the reason of. */
function showChange(change, ask) {
  const name = (text, what) => (ask ? button(text, () => ask(what)) : text);
  const out = el("div", { class: "diff" }, el("div", {}, el("span", { class: "sign" }, change.sign), name(change.name, change.name)));
  for (const [path, old, now] of change.fields) {
    out.append(el("div", { class: "field" }, name(path, `${change.name} ${path}`), ": ", el("span", { class: "old" }, old), " → ",
      el("span", { class: "new" }, now)));
  }
  if (change.whole) out.append(el("details", { class: "field" }, el("summary", {}, "the new object"), el("pre", {}, change.whole)));
  return out;
}

function showObjects(run, ask) {
  const names = Object.keys(run.last);
  if (!names.length) return el("div", {});
  return el("details", {}, el("summary", {}, `${plural(names.length, "object")} at the end of this run`), ...names.map((name) => {
    const last = [...run.steps].reverse().find((step) => step.changes.some((change) => change.name === name));
    return el("details", { class: "field" }, el("summary", { class: "label" }, name),
      last ? button(`Why? (last changed in step ${last.number})`, () => ask(last, name)) : el("span", { class: "soft" }, "nobody changed it"),
      el("pre", {}, run.last[name]));
  }));
}

function legend() {
  const key = (text, name) => { const node = el("span", {}, text); node.style.color = colour(name); return node; };
  return el("div", { class: "key" }, key("starts", "--start"), key("reads", "--read"), key("writes", "--write"), key("view moves", "--view"),
    key("fault; stale read (ring), and what it missed (dashed)", "--fault"), el("b", {}, "click an object or a field: why?"));
}

// -- violations and ends ---------------------------------------------------------------------------------------------

function choices(names, first, show) {
  const bar = el("div", { class: "bar" }), below = el("div", {});
  function choose(at) {
    bar.replaceChildren(...names.map((name, other) => button(name, () => choose(other), other === at)));
    below.replaceChildren(show(at));
  }
  if (names.length) choose(first);
  return el("div", {}, names.length > 1 ? bar : "", below);
}

function showViolation(violation) {
  return el("div", {}, el("h2", {}, `VIOLATED  ${violation.title}`), el("p", {}, violation.message),
    el("details", {}, el("summary", {}, "the schedule, for --replay"), el("pre", {}, violation.schedule)),
    violation.run ? showRun(violation.run) : "",
    violation.other ? el("div", {}, el("h3", {}, "But also:"), showRun(violation.other)) : "");
}

function showEnds(check) {
  const count = check.ends.length;
  const told = check.all_ends > count ? `the first ${count} of ${plural(check.all_ends, "end")}` : plural(count, "end");
  const names = check.ends.map((run, at) => `end ${at + 1}: ${plural(run.steps.length + run.omitted, "step")}`);
  const box = el("div", {}, el("h2", {}, `Where runs come to rest: ${told}`));
  if (count > 1) box.append(el("h3", {}, "Two of them side by side"), comparison(check));
  if (count) box.append(el("h3", {}, "The way there"), choices(["(none shown)", ...names], 0, (at) => (at ? showRun(check.ends[at - 1]) : el("div", {}))));
  return box;
}

function comparison(check) {
  const pick = (at) => el("select", { onchange: () => compare() }, ...check.ends.map((_, index) =>
    el("option", { value: index + 1, selected: index === at }, `end ${index + 1}`)));
  const one = pick(0), other = pick(1), below = el("div", {});
  function compare() {
    const [low, high] = [Number(one.value), Number(other.value)].sort((a, b) => a - b);
    const found = check.partings.find((parting) => parting.one === low && parting.other === high);
    if (!found) return below.replaceChildren(el("p", { class: "soft" }, "choose two different ends"));
    below.replaceChildren(
      el("p", {}, `Their ways part at step ${found.step}:`),
      el("p", {}, `to end ${low}: `, el("span", { class: "label" }, found.first || "(has ended)")),
      el("p", {}, `to end ${high}: `, el("span", { class: "label" }, found.second || "(has ended)")),
      el("p", {}, `From end ${low} to end ${high}:`),
      ...found.differences.map((each) => showChange(each, null)),
    );
  }
  compare();
  return el("div", {}, el("div", { class: "bar" }, one, "and", other), below);
}

// -- the graph of states ---------------------------------------------------------------------------------------------

/** Places of the states: a column for each depth, ordered by where the states before them are. */
function layout(picture) {
  const columns = [], rank = new Array(picture.spots.length).fill(0);
  picture.spots.forEach((spot, at) => (columns[spot.depth] ||= []).push(at));
  const tallest = Math.max(...columns.filter(Boolean).map((column) => column.length));
  for (const column of columns.filter(Boolean)) {
    const before = (at) => (picture.spots[at].parent < 0 ? 0 : rank[picture.spots[at].parent]);
    column.sort((a, b) => before(a) - before(b) || a - b);
    column.forEach((at, place) => { rank[at] = (place + 0.5) / column.length; });
  }
  const height = Math.max(160, Math.min(tallest * 16, 2400)), gap = columns.length > 60 ? 14 : 24;
  return { width: columns.length * gap + 40, height, x: (at) => 20 + picture.spots[at].depth * gap, y: (at) => rank[at] * height };
}

function showGraph(picture, branches) {
  const { width, height, x, y } = layout(picture);
  const lit = svg("g", {}), below = el("div", {}), side = el("div", { class: "side" }, el("p", { class: "soft" }, "click a state: the way there"));
  const lines = picture.edges.map(([from, to]) => (from === to ? "" : edge(from, to))).join("");
  function edge(from, to) {
    const back = x(to) <= x(from) ? 26 : 0; // a step back is an arc above
    return `M${x(from)} ${y(from)}Q${(x(from) + x(to)) / 2} ${(y(from) + y(to)) / 2 - back} ${x(to)} ${y(to)}`;
  }
  function choose(at) {
    const way = [];
    for (let here = at; here >= 0; here = picture.spots[here].parent) way.unshift(here);
    lit.replaceChildren(
      svg("path", { d: way.slice(1).map((to, index) => edge(way[index], to)).join(""), fill: "none", stroke: colour("--accent"), "stroke-width": 2.5 }),
      svg("circle", { cx: x(at), cy: y(at), r: 8, fill: "none", stroke: colour("--accent"), "stroke-width": 2 }));
    const spot = picture.spots[at], next = picture.edges.filter(([from]) => from === at);
    side.replaceChildren(
      el("h3", {}, `State ${spot.state}${spot.mark ? ` (${spot.mark})` : ""}, ${plural(spot.depth, "step")} from the start, store ${spot.store}`),
      branches.length ? el("p", { class: "soft" }, "the way there stands below the graph")
        : el("ol", { class: "label" }, ...way.slice(1).map((each) => el("li", {}, picture.actions[picture.spots[each].via]))),
      el("h3", {}, next.length ? "From here" : "Nothing is known to happen from here"),
      ...next.map(([, to, action]) => el("div", {}, button(`${picture.actions[action]} → state ${picture.spots[to].state}`, () => choose(to)))));
    if (!branches.length) return;
    const steps = way.slice(1).map((each) => branches[each]), lanes = [...new Set(steps.map((step) => step.lane))];
    below.replaceChildren(el("h3", {}, `The way to state ${spot.state}`),
      showRun({ lanes, steps, turn: steps.length, for_ever: false, omitted: 0, last: {} }));
  }
  const drawing = svg("svg", { width, height: height + 20, viewBox: `0 -10 ${width} ${height + 20}` },
    svg("path", { d: lines, fill: "none", stroke: colour("--soft"), "stroke-width": 0.8, opacity: 0.5 }), lit,
    ...picture.spots.map((spot, at) => {
      const node = svg("circle", { cx: x(at), cy: y(at), r: spot.mark ? 5 : 3, fill: colour(SPOTS[spot.mark]), cursor: "pointer" },
        title(`state ${spot.state}${spot.mark ? `: ${spot.mark}` : ""}`));
      node.addEventListener("click", () => choose(at));
      return node;
    }));
  const key = el("div", { class: "key" }, ...[["start", "start"], ["comes to rest", "end"], ["violated", "violated"], ["for ever", "loop"], ["not looked at yet", "open"]]
    .map(([text, mark]) => { const node = el("span", {}, text); node.style.color = colour(SPOTS[mark]); return node; }));
  return el("div", {}, el("h2", {}, "States"), el("p", {}, `${picture.said}; columns are steps from the start`), key,
    el("div", { class: "graph" }, el("div", { class: "canvas" }, drawing), side), below);
}

// -- the page --------------------------------------------------------------------------------------------------------

function showCheck(check) {
  const names = check.violations.map((violation, at) => `${at + 1}. ${violation.title}`);
  return el("div", {},
    el("div", { class: "bar" }, el("h1", {}, `${check.title}: ${check.outcome}`),
      el("span", { class: `chip ${check.holds ? "good" : "bad"}` }, check.holds ? "no violation" : plural(check.violations.length, "violation")),
      el("span", { class: `chip ${check.word === "COMPLETE" ? "good" : "bounded"}` }, check.word)),
    el("p", { class: "soft" }, check.target),
    el("pre", {}, check.summary),
    names.length ? choices(names, 0, (at) => showViolation(check.violations[at])) : "",
    check.ends.length ? showEnds(check) : "",
    check.picture ? showGraph(check.picture, check.branches) : el("p", { class: "soft" }, "no graph of states: this was no search"));
}

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
}

const titles = data.checks.map((check) => `${check.holds ? "✓" : "✗"} ${check.title}`);
const worst = Math.max(0, data.checks.findIndex((check) => !check.holds));
document.body.append(el("main", {},
  el("div", { class: "bar" }, el("span", { class: "soft" }, `${data.made_by}: check`), el("span", { class: "grow" }), button("dark / light", theme)),
  data.checks.length ? choices(titles, worst, (at) => showCheck(data.checks[at])) : el("p", {}, "Nothing was checked.")));
