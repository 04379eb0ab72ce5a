// main.js: the headline, the tables, the filters, and what the buttons do.

// attention answers the question of the morning: is all well, and if not, what is not?
function attention() {
  const list = [], held = j => `${j.name}${j.why ? ": " + j.why : ""}`;
  for (const s of facts.silences) { // where the ticks of others are hidden, these may serve the jobs by now
    if (!s.to && !facts.hidden) list.push(["silent", el("span", null, `no tick by the trigger ${s.trigger} since `, time(s.from), ` (${length(facts.made - s.from)} when the report was made)`)]);
  }
  // A tick of the future is on record where the clock of the database was ahead: it does not show that ticks come.
  const ahead = t => t.last - facts.made > 5 * 60e3;
  for (const t of facts.triggers) {
    if (ahead(t)) list.push(["silent", `no tick by the trigger ${t.name} since the clock of the database was set back`]);
    if (t.error) list.push(["tick failed", [`the last tick by the trigger ${t.name}: `, brief(t.error)]]);
  }
  if (!facts.triggers.length && !facts.hidden) list.push(["no trigger", "no tick is on record"]);
  for (const a of facts.attention) list.push([a.kind, a.text]);
  for (const j of facts.jobs) {
    if (j.parked) list.push(["parked", [`${j.name}: `, brief(j.parked)]]);
    if (j.itself) list.push(["paused itself", held(j)]);
    else if (j.failing && !j.parked) list.push(["failing", [`${j.name}: ${plural(j.streak, "failure")} in a row. `, brief(j.error || "")]]);
    if (j.overdue) list.push(["overdue", el("span", null, `${j.name}: due since `, time(j.overdue))]);
  }
  const paused = facts.jobs.filter(j => j.state === "paused");
  $("h-attention").textContent = list.length ? `${plural(list.length, "thing")} to look at` : "All is well";
  // The page may have less than a day, because somebody asked for less or there are more runs than a page has.
  const span = facts.made - facts.from > day - 60e3 ? day : facts.made - facts.from;
  const recent = runs.filter(r => r.from >= facts.made - span), bad = recent.filter(r => r.state === "failed" || r.state === "lost");
  const last = Math.max(0, ...facts.triggers.filter(t => !ahead(t)).map(t => t.last));
  const figure = (name, value, wrong) => el("div", { class: wrong ? "bad" : undefined }, el("dt", null, name), el("dd", null, value));
  $("figures").replaceChildren(
    figure(`runs in ${span === day ? "24 h" : length(span)}`, recent.length.toLocaleString("en")), figure("failed or lost", bad.length.toLocaleString("en"), bad.length),
    figure("running", String(runs.filter(r => r.state === "running").length)), figure("waiting", String(runs.filter(r => r.state === "waiting" || r.state === "queued").length)),
    figure("jobs", facts.jobs.filter(j => j.state !== "removed").length.toLocaleString("en")), figure("paused", String(paused.length)),
    figure("last tick", last ? `${length(Math.max(0, facts.made - last))} before` : facts.hidden ? "not visible" : "none", !last && !facts.hidden));
  for (const j of paused) if (!j.itself) list.push(["paused", held(j)]);
  const rows = list.map(([kind, what]) => el("li", null, el("b", null, kind), what)), most = 12;
  $("needs").replaceChildren(...rows.slice(0, most));
  if (rows.length > most) $("needs").append(el("li", null, el("details", null, el("summary", null, `${rows.length - most} more`), el("ul", { class: "needs" }, rows.slice(most)))));
}

const late = r => r.nominal && r.started ? Math.max(0, r.started - r.nominal) : NaN;
const took = r => r.started && r.ended ? r.ended - r.started : NaN;
const name = x => facts.jobs[x.job].name;
const runColumns = [
  ["Job", r => name(r), "name"], ["State", r => tag(r.state)], ["Nominal time", r => r.nominal ? time(r.nominal) : r.origin], ["Started", r => time(r.started)],
  ["Late", r => length(late(r)), "number"], ["Took", r => length(took(r)), "number"], ["Error", r => brief(r.error), "long"], ["Run", r => el("code", null, r.id)],
];

// spark is the lengths of a job's last runs, as bars. What it shows stands beside it in numbers.
function spark(list) {
  const last = list.slice(-40), most = Math.max(1, ...last.map(r => took(r)).filter(Number.isFinite)), space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 120 24");
  svg.setAttribute("class", "spark");
  svg.setAttribute("aria-hidden", "true");
  last.forEach((r, i) => {
    const h = Math.max(2, 24 * (took(r) || 0) / most), bar = document.createElementNS(space, "rect");
    for (const [key, value] of Object.entries({ x: 3 * i, y: 24 - h, width: 2, height: h })) bar.setAttribute(key, value);
    if (unwell.includes(r.state)) bar.setAttribute("class", "bad");
    svg.append(bar);
  });
  return svg;
}

// sorting is by which column the table of jobs is sorted.
const sorting = { by: "Failed", down: true };

function jobs() {
  const of = new Map(selected.jobs.map(j => [j, []]));
  for (const r of selected.runs) if (of.has(r.job)) of.get(r.job).push(r);
  const rows = [...of].map(([i, list]) => {
    const lengths = list.map(took).filter(Number.isFinite).sort((a, b) => a - b), waits = list.map(late).filter(Number.isFinite).sort((a, b) => a - b);
    return { j: facts.jobs[i], list, failed: list.filter(r => r.state === "failed" || r.state === "lost").length, lengths, waits };
  });
  const p = (list, n) => percentile(list, n), show = ms => length(ms);
  const columns = [
    ["Job", r => r.j.name, "name", r => r.j.name.toLowerCase()], ["State", r => r.j.state, "", r => r.j.state], ["Runs", r => r.list.length.toLocaleString("en"), "number", r => r.list.length],
    ["Failed", r => String(r.failed), "number", r => r.failed],
    ["Took p50", r => show(p(r.lengths, 50)), "number", r => p(r.lengths, 50)], ["p95", r => show(p(r.lengths, 95)), "number", r => p(r.lengths, 95)], ["max", r => show(p(r.lengths, 100)), "number", r => p(r.lengths, 100)],
    ["Last runs", r => spark(r.list)],
    ["Late p50", r => show(p(r.waits, 50)), "number", r => p(r.waits, 50)], ["late p95", r => show(p(r.waits, 95)), "number", r => p(r.waits, 95)], ["late max", r => show(p(r.waits, 100)), "number", r => p(r.waits, 100)],
    ["Next", r => r.j.next ? time(r.j.next, `${date(r.j.next)} ${clock(r.j.next)}`) : "–", "", r => r.j.next || Infinity], ["Schedule", r => r.j.schedule || "on request", "name"],
  ];
  const value = (columns.find(c => c[0] === sorting.by) || columns[0])[3];
  rows.sort((a, b) => {
    const u = value(a), v = value(b), order = typeof u === "string" ? u.localeCompare(v) : (Number.isNaN(u) ? -1 : u) - (Number.isNaN(v) ? -1 : v);
    return (sorting.down ? -order : order) || a.j.name.localeCompare(b.j.name);
  });
  const sort = (head, key) => ({
    order: () => sorting.by !== head ? "none" : sorting.down ? "descending" : "ascending",
    button: () => {
      const b = el("button", { type: "button" }, head);
      b.addEventListener("click", () => {
        [sorting.down, sorting.by] = [sorting.by === head ? !sorting.down : typeof key(rows[0]) !== "string", head];
        jobs();
        [...$("jobs").querySelectorAll("th button")].find(x => x.textContent === head).focus();
      });
      return b;
    },
  });
  table($("jobs"), "", columns.map(([head, cell, kind, key]) => [head, cell, kind, key && sort(head, key)]), rows, "No job fits the filters.");
}

// unbroken says what it means that there is no silence.
const unbroken = () => facts.hidden ? "None that this login may see." : facts.triggers.length ? "None: no trigger that comes every few minutes was silent for more than five." : "No tick is on record.";

// render writes all that follows the filters.
function render() {
  select();
  $("found").textContent = `${plural(selected.runs.length, "run")} of ${plural(selected.jobs.length, "job")}`;
  timeline.layout();
  const newest = [...selected.runs].reverse(), failures = newest.filter(r => r.state === "failed" || r.state === "lost");
  table($("failures"), failures.length ? `${plural(failures.length, "run")}, the newest first` : "", runColumns, failures, "None.", 50);
  jobs();
  table($("gaps"), selected.gaps.length ? "Nominal times that were decided not to run, and why." : "",
    [["Job", g => name(g), "name"], ["After", g => time(g.from)], ["Through", g => time(g.through)], ["Reason", g => g.reason]], selected.gaps, "None.", 50);
  table($("silences"), "", [["Trigger", s => s.trigger, "name"], ["From", s => time(s.from)], ["To", s => s.to ? time(s.to) : "still silent"],
    ["Length", s => length((s.to || facts.made) - s.from), "number"]], selected.silences, unbroken(), 50);
  calendar();
  if ($("runs-table").open) runsTable();
}
const runsTable = () => table($("runs-table").querySelector("div"), "The newest first", runColumns, [...selected.runs].reverse(), "No run fits the filters.", 200);

function frame() {
  $("made").replaceChildren(`${facts.database} · ${facts.chosen ? "some jobs, " : ""}made `, time(facts.made), ` · runs since `, time(facts.from));
  $("zone").textContent = "Times: " + zoneName();
  $("foot").textContent = `dbjobs ${facts.version}. Nothing on this page comes from elsewhere.`;
  const age = Date.now() - facts.made;
  $("stale").hidden = age < hour;
  $("stale").textContent = `This report is ${length(age)} old: what happened since is not in it.`;
  $("cut").hidden = !facts.cut.length;
  $("cut").textContent = facts.cut.join(" ");
}

// The switch of colours goes from what the system has to light, to dark, and back. It is kept where a browser allows that.
const dark = matchMedia("(prefers-color-scheme: dark)"), themes = ["system", "light", "dark"];
const memory = {
  get: key => { try { return localStorage.getItem("dbjobs-" + key); } catch { return null; } },
  set: (key, value) => { try { localStorage.setItem("dbjobs-" + key, value); } catch { /* the next visit begins anew */ } },
};
let theme = themes.includes(memory.get("theme")) ? memory.get("theme") : "system";
function paintTheme(printing = false) {
  const night = !printing && (theme === "dark" || theme === "system" && dark.matches);
  document.documentElement.dataset.theme = night ? "dark" : "light";
  $("theme").textContent = "Colours: " + theme;
  timeline.layout();
}

function begin() {
  const states = ["", "unwell", ...stateOrder.filter(s => facts.runs.states.includes(s))];
  $("f-state").append(...states.map(s => el("option", { value: s }, s === "" ? "all" : s === "unwell" ? "failed, lost or cancelled" : s)));
  const spans = [1, 6, 24, 3 * 24, 7 * 24, 30 * 24].filter(h => h * hour < facts.made - facts.from);
  $("f-time").append(el("option", { value: "" }, "all"), ...spans.map(h => el("option", { value: h }, `last ${length(h * hour)}`)));
  $("legend").append(...stateOrder.slice(0, 6).map(s => el("li", { class: s === "queued" ? "waiting" : s }, el("i"), s === "queued" ? "waiting" : s)),
    el("li", { class: "gap" }, el("i"), "times without a run"), el("li", { class: "silence" }, el("i"), "no tick"));

  $("filters").addEventListener("submit", e => e.preventDefault());
  const change = () => {
    const hours = Number($("f-time").value), from = hours ? facts.made - hours * hour : facts.from;
    if (from !== filter.from) timeline.look(from, facts.made);
    [filter.job, filter.state, filter.from] = [$("f-job").value.trim(), $("f-state").value, from];
    render();
  };
  let typing = 0;
  $("f-job").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(change, 120); });
  $("f-state").addEventListener("change", change);
  $("f-time").addEventListener("change", change);
  $("f-clear").addEventListener("click", () => { $("filters").reset(); change(); });
  $("zone").addEventListener("click", () => { utc = !utc; frame(); attention(); render(); });
  $("theme").addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    memory.set("theme", theme);
    paintTheme();
  });
  dark.addEventListener("change", () => paintTheme());
  addEventListener("beforeprint", () => paintTheme(true));
  addEventListener("afterprint", () => paintTheme());
  addEventListener("resize", () => timeline.layout());
  $("runs-table").addEventListener("toggle", () => { if ($("runs-table").open) runsTable(); });
  select();
  frame();
  attention();
  paintTheme();
  render();
}
begin();
