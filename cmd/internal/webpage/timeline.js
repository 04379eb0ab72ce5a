// timeline.js: the picture of the runs, a lane for each job. Only the lanes in sight are drawn, and of runs
// that fall on the same pixel only what differs, so that ten thousand runs stay smooth.
const timeline = (() => {
  const canvas = $("timeline"), box = $("lanes"), spacer = $("spacer"), pen = canvas.getContext("2d");
  const lane = 22, head = 26;
  // It begins with what there is: a week of which only the last hour has runs would show nothing.
  const begun = Math.min(facts.made - 60e3, ...[...facts.gaps, ...facts.silences].map(g => g.from), ...runs.slice(0, 1).map(r => r.from));
  const view = { from: Math.max(facts.from, begun - (facts.made - begun) * .02), to: facts.made };
  let lanes = [], of = new Map(), picked = -1, chosen = null, width = 0, height = 0, margin = 0, colours = {}, waiting = false;
  const least = 10e3; // the shortest time that the width shows

  const x = t => margin + (t - view.from) / (view.to - view.from) * (width - margin);
  const at = px => view.from + (px - margin) / (width - margin) * (view.to - view.from);

  // layout follows the size of the box and the choice of jobs.
  function layout() {
    const styles = getComputedStyle(document.documentElement);
    for (const name of ["card", "text", "quiet", "line", "track", "gap", "silence", "focus", ...stateOrder]) {
      colours[name] = styles.getPropertyValue("--" + name).trim();
    }
    colours.queued = colours.waiting;
    lanes = selected.jobs;
    of = new Map(lanes.map(j => [j, { runs: [], gaps: [] }]));
    for (const r of selected.runs) if (of.has(r.job)) of.get(r.job).runs.push(r);
    for (const g of selected.gaps) if (of.has(g.job)) of.get(g.job).gaps.push(g);
    for (const l of of.values()) l.longest = l.runs.reduce((most, r) => Math.max(most, r.to - r.from), 0);
    const total = head + Math.max(1, lanes.length) * lane + 4;
    spacer.style.height = total + "px";
    width = Math.max(240, box.clientWidth);
    height = Math.min(total, Math.max(160, Math.floor(innerHeight * .6)));
    margin = width < 560 ? 96 : 190;
    const scale = devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pick(picked >= 0 && lanes.includes(picked) ? picked : -1, null);
    draw();
  }

  // draw asks for one drawing with the next frame, however often it is called.
  function draw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; paint(); });
  }

  // first is the place of the first run in a sorted list that may reach into the view.
  function first(l) {
    let low = 0, high = l.runs.length;
    const from = view.from - l.longest;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (l.runs[mid].from < from) low = mid + 1; else high = mid;
    }
    return low;
  }

  function paint() {
    pen.fillStyle = colours.card;
    pen.fillRect(0, 0, width, height);
    const top = box.scrollTop;
    for (const s of selected.silences) {
      const a = Math.max(margin, x(s.from)), b = Math.min(width, x(s.to || facts.made));
      pen.fillStyle = colours.silence;
      if (b > a) pen.fillRect(a, head, Math.max(1, b - a), height - head);
    }
    pen.font = "13px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const begin = Math.max(0, Math.floor(top / lane)), end = Math.min(lanes.length, Math.ceil((top + height) / lane));
    for (let i = begin; i < end; i++) paintLane(lanes[i], head + i * lane - top);
    if (!lanes.length) {
      pen.fillStyle = colours.quiet;
      pen.fillText("No job fits the filters.", 10, head + lane / 2);
    }
    paintAxis();
  }

  function paintLane(j, y) {
    const l = of.get(j);
    pen.fillStyle = j === picked ? colours.line : colours.track;
    if (j === picked) pen.fillRect(0, y + 1, width, lane - 2);
    else pen.fillRect(margin, y + lane / 2, width - margin, 1);
    for (const g of l.gaps) {
      const a = Math.max(margin, x(g.from)), b = x(g.through);
      if (b < margin || a > width) continue;
      pen.fillStyle = colours.gap;
      pen.fillRect(a, y + lane - 6, Math.max(3, b - a), 3);
    }
    let lastPixel = -1, lastState = "";
    for (let i = first(l); i < l.runs.length && l.runs[i].from <= view.to; i++) {
      const r = l.runs[i];
      if (r.to < view.from) continue;
      const a = Math.max(margin, Math.floor(x(r.from))), b = Math.min(width, Math.max(a + 2, x(r.to)));
      if (a === lastPixel && b - a <= 2 && (r.state === lastState || unwell.includes(lastState))) continue;
      pen.fillStyle = colours[r.state] || colours.waiting;
      // What went wrong is taller: it must be seen among a thousand that went well, and without its colour.
      const tall = unwell.includes(r.state) ? 16 : 10;
      pen.fillRect(a, y + (lane - tall) / 2, b - a, tall);
      if (r === chosen) {
        pen.strokeStyle = colours.focus;
        pen.lineWidth = 2;
        pen.strokeRect(a - 2, y + 2, b - a + 4, lane - 4);
      }
      lastPixel = a;
      lastState = r.state;
    }
    pen.fillStyle = j === picked ? colours.line : colours.card;
    pen.fillRect(0, y, margin - 6, lane);
    pen.fillStyle = colours.text;
    pen.fillText(fit(facts.jobs[j].name, margin - 16), 8, y + lane / 2);
  }

  // fit shortens a text in its middle to a width.
  function fit(text, room) {
    if (pen.measureText(text).width <= room) return text;
    let n = Math.min(text.length, 60);
    while (n > 2 && pen.measureText(text.slice(0, n / 2) + "…" + text.slice(-n / 2)).width > room) n--;
    return text.slice(0, n / 2) + "…" + text.slice(-n / 2);
  }

  // paintAxis writes times at full steps of the clock.
  function paintAxis() {
    pen.fillStyle = colours.card;
    pen.fillRect(0, 0, width, head);
    pen.fillStyle = colours.line;
    pen.fillRect(0, head - 1, width, 1);
    const room = (view.to - view.from) / (width - margin) * 88;
    const steps = [1e3, 5e3, 15e3, 60e3, 5 * 60e3, 15 * 60e3, 30 * 60e3, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 3 * day, 7 * day, 14 * day, 28 * day];
    const step = steps.find(s => s >= room) || 91 * day;
    const base = startOfDay(view.from);
    let n = Math.floor((view.from - base) / step);
    for (;; n++) {
      const t = step >= day ? startOfDay(base, n * step / day) : base + n * step;
      if (t > view.to) break;
      const px = x(t);
      if (px < margin || px > width - 30) continue;
      const midnight = startOfDay(t) === t;
      pen.fillStyle = colours.line;
      pen.fillRect(px, midnight ? 0 : head - 6, 1, midnight ? height : 5);
      pen.fillStyle = midnight ? colours.text : colours.quiet;
      const text = step >= day || midnight ? date(t) : step < 60e3 ? format(t, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }) : clock(t);
      pen.fillText(text, px + 4, head / 2);
    }
    canvas.setAttribute("aria-label", `Runs of ${plural(lanes.length, "job")} from ${instant(view.from)} to ${instant(view.to)}, ${zoneName()}`);
  }

  // look shows a time span, within what the report has.
  function look(from, to) {
    const whole = facts.made - facts.from, span = Math.min(whole, Math.max(least, to - from));
    view.from = Math.max(facts.from, Math.min(facts.made - span, from));
    view.to = view.from + span;
    draw();
  }
  const move = part => look(view.from + part * (view.to - view.from), view.to + part * (view.to - view.from));
  const zoom = (factor, around = (view.from + view.to) / 2) =>
    look(around - (around - view.from) * factor, around + (view.to - around) * factor);

  // describe says what a run is, for the line below the picture.
  function describe(r) {
    const took = r.started && r.ended ? `, took ${length(r.ended - r.started)}` : "";
    const late = r.nominal && r.started ? `, ${length(Math.max(0, r.started - r.nominal))} after its nominal time ${instant(r.nominal)}` : "";
    return `${facts.jobs[r.job].name}: ${r.state}, ${r.started ? "started" : "made"} ${instant(r.from)}${late}${took}. ${head(r.error)} Run ${r.id}`;
  }

  function pick(j, r) {
    picked = j;
    chosen = r;
    const l = of.get(j), n = l ? l.runs.filter(r => r.to >= view.from && r.from <= view.to) : [];
    $("picked").textContent = r ? describe(r) : j < 0 ? "" :
      `${facts.jobs[j].name}: ${plural(n.length, "run")} in sight, ${n.filter(r => unwell.includes(r.state)).length} of them not well`;
    draw();
  }

  // step goes to the next or the last job, and keeps it in sight.
  function step(by) {
    if (!lanes.length) return;
    const i = Math.max(0, Math.min(lanes.length - 1, lanes.indexOf(picked) + by));
    const y = i * lane;
    if (y < box.scrollTop) box.scrollTop = y;
    if (y + lane + head > box.scrollTop + height) box.scrollTop = y + lane + head - height;
    pick(lanes[i], null);
  }

  // hit finds the run under the pointer: the nearest one of the lane, within a few pixels.
  function hit(px, py) {
    const j = lanes[Math.floor((py - head + box.scrollTop) / lane)], l = of.get(j);
    let best = null, distance = 6;
    if (!l || py < head || px < margin) return [j === undefined ? -1 : j, null];
    for (const r of l.runs) {
      const a = x(r.from), b = Math.max(a + 2, x(r.to)), d = px < a ? a - px : px > b ? px - b : 0;
      if (d < distance || d === distance && d === 0) [best, distance] = [r, d];
    }
    return [j, best];
  }

  canvas.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const keys = {
      ArrowLeft: () => move(-.25), ArrowRight: () => move(.25), ArrowUp: () => step(-1), ArrowDown: () => step(1),
      "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), 0: () => look(facts.from, facts.made),
      Home: () => look(facts.from, facts.from + view.to - view.from), End: () => look(facts.made - (view.to - view.from), facts.made),
    };
    if (!keys[e.key]) return;
    keys[e.key]();
    if (!e.key.startsWith("ArrowU") && !e.key.startsWith("ArrowD")) pick(picked, null);
    e.preventDefault();
  });
  let drag = null;
  canvas.addEventListener("pointerdown", e => {
    drag = { x: e.offsetX, from: view.from, to: view.to, moved: false };
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener("pointermove", e => {
    if (!drag) return;
    const by = (drag.x - e.offsetX) / (width - margin) * (drag.to - drag.from);
    drag.moved = drag.moved || Math.abs(drag.x - e.offsetX) > 3;
    if (drag.moved) look(drag.from + by, drag.to + by);
  });
  canvas.addEventListener("pointerup", e => {
    if (drag && !drag.moved) pick(...hit(e.offsetX, e.offsetY));
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("wheel", e => {
    if (!e.ctrlKey) return; // the wheel alone scrolls the page
    e.preventDefault();
    zoom(e.deltaY > 0 ? 1.25 : .8, at(e.offsetX));
  }, { passive: false });
  box.addEventListener("scroll", draw);
  $("z-in").addEventListener("click", () => zoom(.5));
  $("z-out").addEventListener("click", () => zoom(2));
  $("z-left").addEventListener("click", () => move(-.5));
  $("z-right").addEventListener("click", () => move(.5));
  $("z-all").addEventListener("click", () => look(facts.from, facts.made));
  return { layout, look, draw, view };
})();
