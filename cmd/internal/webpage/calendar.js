// calendar.js: the coming weeks. A job that runs many times a day, or has more times than the page has, is told once,
// above; the others stand in their days.
function calendar() {
  const often = [], days = new Map(), most = 8;
  for (const i of selected.jobs) {
    const j = facts.jobs[i], t = j.ahead;
    if (!t.length) continue;
    const pace = t.length > 1 ? (t[t.length - 1] - t[0]) / (t.length - 1) : Infinity;
    if (j.more || t.length > 12 && pace < 3 * hour) {
      often.push([j, pace]);
      continue;
    }
    for (const at of t) {
      const d = startOfDay(at);
      if (!days.has(d)) days.set(d, []);
      days.get(d).push([at, j.name]);
    }
  }
  $("often").replaceChildren();
  if (often.length) {
    $("often").append(el("p", { class: "hint" }, "Too many times for the days below:"), el("ul", { class: "often" },
      often.sort((a, b) => a[1] - b[1]).map(([j, pace]) => el("li", null, el("b", null, `about every ${length(pace)}`), j.name, `, next ${instant(j.ahead[0])}`))));
  }
  const weeks = el("ol", { class: "weeks" });
  const weekday = (new Date(startOfDay(facts.made) + 12 * hour)[utc ? "getUTCDay" : "getDay"]() + 6) % 7;
  for (let n = -weekday; ; n++) {
    const d = startOfDay(facts.made, n);
    if (d >= facts.until) break;
    if (n < 0) {
      weeks.append(el("li", { class: "pad", "aria-hidden": "true" }));
      continue;
    }
    const list = (days.get(d) || []).sort((a, b) => a[0] - b[0]);
    const row = ([at, name]) => el("li", { title: name }, time(at, clock(at)), name);
    weeks.append(el("li", { class: n === 0 ? "today" : undefined }, el("h3", null, n === 0 ? `Today, ${date(d)}` : date(d)),
      el("ol", null, list.slice(0, most).map(row)),
      list.length > most ? el("details", null, el("summary", null, `${list.length - most} more`), el("ol", null, list.slice(most).map(row))) : null));
  }
  $("calendar").replaceChildren(days.size || often.length ? weeks : el("p", { class: "none" }, "There is no further time."));
}
