"""The scheduler: a pure core (`core.Scheduler`), its plain twin (`plain`), and the parts they are made of."""
