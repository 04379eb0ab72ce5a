// data.js: the facts, and what all other parts use of them. Texts go into the page as text only: by el and
// textContent. Nothing here ever parses HTML.
const facts = JSON.parse(document.getElementById("facts").textContent);
const $ = id => document.getElementById(id);
const hour = 3600e3, day = 24 * hour;
const unwell = ["failed", "lost", "cancelled"];
const stateOrder = ["succeeded", "failed", "lost", "cancelled", "running", "queued", "waiting"];

// runs are the rows of facts.runs as objects, the oldest first. A run lies where it started; one that has
// not, where it was made.
const runs = facts.runs.id.map((id, i) => {
  const r = facts.runs;
  return {
    id, job: r.job[i], state: r.states[r.state[i]], origin: r.origins[r.origin[i]], nominal: r.nominal[i], made: r.made[i], started: r.started[i],
    ended: r.ended[i], error: r.error[i] < 0 ? "" : r.errors[r.error[i]], from: r.started[i] || r.made[i],
    // A run that is under way goes on until the report was made.
    to: r.ended[i] || (r.started[i] ? Math.max(facts.made, r.started[i]) : r.started[i] || r.made[i]),
  };
}).sort((a, b) => a.from - b.from);

// el makes an element with attributes and children; a child that is no node becomes text.
function el(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === true) e.setAttribute(key, "");
    else if (value !== false && value !== undefined) e.setAttribute(key, value);
  }
  e.append(...children.flat().filter(c => c !== null && c !== undefined));
  return e;
}

// Times are those of the reader's zone, or UTC.
let utc = false;
const formats = new Map();
function format(t, options) {
  const key = JSON.stringify(options) + utc;
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat("en-GB", utc ? { ...options, timeZone: "UTC" } : options));
  return formats.get(key).format(t);
}
const clock = t => format(t, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const date = t => format(t, { weekday: "short", day: "numeric", month: "short" });
const instant = t => t ? `${date(t)} ${format(t, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" })}` : "–";
const zoneName = () => utc ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";

// startOfDay is the first instant of a day, days later than that of t, in the chosen zone.
function startOfDay(t, days = 0) {
  const d = new Date(t);
  if (utc) return Date.UTC(d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate() + days);
  return new Date(d.getFullYear(), d.getMonth(), d.getDate() + days).getTime();
}

// time is an element with the machine's form of an instant beside what people read.
const time = (t, text = instant(t)) => t ? el("time", { datetime: new Date(t).toISOString() }, text) : "–";

// head is the beginning of a text that is longer than a few lines, or the text. brief has the rest behind a switch, so that
// one error does not fill a screen.
const few = 300;
const head = text => text.length > few ? Array.from(text).slice(0, few).join("") + " …" : text;
const brief = text => text.length > few ? el("details", { class: "brief" }, el("summary", null, head(text)), Array.from(text).slice(few).join("")) : text;

// length writes a time span in its two largest units.
function length(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60e3) return `${(ms / 1000).toFixed(ms < 10e3 ? 1 : 0)} s`;
  const s = Math.round(ms / 1000), parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const i = parts.findIndex(([n]) => s >= n);
  const [big, unit] = parts[i], rest = parts[i + 1] ? Math.floor(s % big / parts[i + 1][0]) : 0;
  return `${Math.floor(s / big)} ${unit}` + (rest ? ` ${rest} ${parts[i + 1][1]}` : "");
}

// percentile is by nearest rank: the smallest value that p per cent of the sorted list do not exceed.
const percentile = (sorted, p) => sorted.length ? sorted[Math.max(0, Math.ceil(sorted.length * p / 100) - 1)] : NaN;

const plural = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

// filter is what the reader asked for; selected are the jobs and runs that it leaves.
const filter = { job: "", state: "", from: facts.from };
const selected = { jobs: [], runs: [], gaps: [], silences: [] };

function select() {
  const word = filter.job.toLowerCase();
  const has = facts.jobs.map(j => j.name.toLowerCase().includes(word));
  const within = to => to >= filter.from;
  selected.runs = runs.filter(r => has[r.job] && (!filter.state || r.state === filter.state ||
    filter.state === "unwell" && unwell.includes(r.state)) && within(r.ended ? r.to : facts.made));
  selected.gaps = filter.state ? [] : facts.gaps.filter(g => has[g.job] && within(g.through));
  selected.silences = facts.silences.filter(s => within(s.to || facts.made));
  const seen = new Set(selected.runs.map(r => r.job));
  selected.jobs = facts.jobs.map((j, i) => i).filter(i => has[i] && (!filter.state || seen.has(i)));
}

// tag is a state with its colour.
const tag = state => el("span", { class: "state " + state }, el("i", { "aria-hidden": "true" }), state);

// table fills a box with a table of at most `most` rows; a button shows more. Each column has a heading,
// and what it shows of a row.
function table(box, caption, columns, rows, empty, most = 100) {
  box.replaceChildren();
  if (!rows.length) {
    box.append(el("p", { class: "none" }, empty));
    return;
  }
  const body = el("tbody");
  let shown = 0;
  const show = () => {
    for (const row of rows.slice(shown, shown + most)) {
      body.append(el("tr", null, columns.map(([, cell, kind]) => el("td", { class: kind }, cell(row)))));
    }
    shown = Math.min(rows.length, shown + most);
  };
  show();
  box.append(el("table", null, el("caption", null, caption), el("thead", null, el("tr", null,
    columns.map(([head, , kind, sort]) => el("th", { scope: "col", class: kind, "aria-sort": sort && sort.order() }, sort ? sort.button(head) : head)))), body));
  if (shown < rows.length) {
    const more = el("button", { type: "button" }, `Show more of ${plural(rows.length, "row")}`);
    more.addEventListener("click", () => {
      show();
      if (shown >= rows.length) more.remove();
    });
    box.append(el("p", { class: "more" }, more));
  }
}
