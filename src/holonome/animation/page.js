// Player of a page: draws the mechanism on canvases, the graphs with Plotly, and keeps one clock for all.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8];
const PANELS = { coordinates: "Coordinates", energy: "Energy", drift: "Drift" };
const DASHES = ["solid", "dash", "dot", "dashdot"];
const dark = matchMedia("(prefers-color-scheme: dark)");
const $ = id => document.getElementById(id);

function numbers(text, Kind) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  return new Kind(bytes.buffer);
}

function element(parent, tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  parent.append(made);
  return made;
}

// Colours of the page by name, as its style sheet has them in the present theme.
let theme = {};
const colour = name => (theme[name] ??= getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());

function nice(x) {
  const power = 10 ** Math.floor(Math.log10(x)), lead = x / power;
  return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

// ---------------------------------------------------------------- runs

class Run {
  constructor(data, number) {
    Object.assign(this, data);
    this.number = number;
    this.way = this.span[1] >= this.span[0] ? 1 : -1;
    for (const curve of this.curves) Object.assign(curve, { t: numbers(curve.t, Float64Array), y: numbers(curve.y, Float64Array) });
    if (this.names === undefined) return;
    this.track = numbers(this.moving, Float32Array);
    this.movers = this.names.length - this.fixed.length;
    this.pose = new Float64Array(this.names.length * this.dimension);
    this.fixed.forEach((place, k) => place.forEach((x, i) => { this.pose[(this.movers + k) * this.dimension + i] = x + this.origin[i]; }));
    const degree = new Array(this.names.length).fill(0);
    for (const pair of [...this.links, ...this.springs]) for (const k of pair) degree[k] += 1;
    const outlines = new Set(this.bodies.flat()), held = new Set([...this.ground, ...this.sliders]), all = this.names.map((_, k) => k);
    this.joints = all.filter(k => degree[k] > 1 && !held.has(k));
    const loose = k => (this.links.length + this.springs.length + this.bodies.length ? degree[k] === 1 && !this.bodies.length : true);
    this.masses = all.filter(k => !held.has(k) && loose(k));
    this.loose = new Set(this.ground.filter(k => degree[k] === 0));
    this.many = this.names.length - outlines.size > 30;
    this.at(this.span[0]);
  }

  // The points at a time, between frames by Catmull and Rom's cubic.
  at(t) {
    const { dimension, movers, frames, origin, pose, track } = this, size = movers * dimension;
    const place = frames < 2 ? 0 : Math.min(Math.max((t - this.span[0]) / (this.span[1] - this.span[0]), 0), 1) * (frames - 1);
    const k = Math.min(Math.floor(place), Math.max(frames - 2, 0)), x = place - k;
    const before = Math.max(k - 1, 0) * size, begin = k * size, end = Math.min(k + 1, frames - 1) * size, after = Math.min(k + 2, frames - 1) * size;
    const a = x * (-0.5 + x * (1 - 0.5 * x)), b = 1 + x * x * (1.5 * x - 2.5), c = x * (0.5 + x * (2 - 1.5 * x)), d = x * x * (0.5 * x - 0.5);
    for (let i = 0; i < size; i++) pose[i] = origin[i % dimension] + a * track[before + i] + b * track[begin + i] + c * track[end + i] + d * track[after + i];
    this.frame = k + x;
    return pose;
  }

  point(k) { return this.pose.subarray(k * this.dimension, (k + 1) * this.dimension); }

  // Where a moving point is in a frame.
  stored(k, frame) {
    const begin = (frame * this.movers + k) * this.dimension;
    return Array.from({ length: this.dimension }, (_, i) => this.track[begin + i] + this.origin[i]);
  }

  // Corners of the box that holds all frames.
  box() {
    const low = new Array(this.dimension).fill(Infinity), high = new Array(this.dimension).fill(-Infinity);
    const include = (x, i) => { if (x < low[i]) low[i] = x; if (x > high[i]) high[i] = x; };
    this.track.forEach((x, j) => include(x + this.origin[j % this.dimension], j % this.dimension));
    for (const place of this.fixed) place.forEach((x, i) => include(x + this.origin[i], i));
    return [low, high];
  }
}

// ---------------------------------------------------------------- the stage

class Stage {
  constructor(run, box, parent) {
    this.run = run;
    this.box = box;
    this.figure = element(parent, "figure", { className: "stage" });
    this.canvas = element(this.figure, "canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${run.title}: drawing of the mechanism, ${run.links.length} links, ${run.names.length} points`);
    const caption = element(this.figure, "figcaption");
    if (runs.length > 1) element(caption, "b", {}, element(caption, "span", { className: "swatch", style: `background: var(--c${run.number % 7})` }), run.title);
    this.state = element(caption, "span", { className: "state" });
    this.context = this.canvas.getContext("2d");
    this.reset();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  get spatial() { return this.run.dimension === 3; }

  reset() {
    [this.azimuth, this.elevation] = this.run.camera.map(degrees => degrees * Math.PI / 180);
    this.zoom = 1;
    this.shift = [0, 0];
    this.resize();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1, { clientWidth, clientHeight } = this.canvas;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.ratio = ratio;
    this.unit = null;
    this.aim();
    draw();
  }

  // Axes, scale and centre of the view. All is seen at first; turning the view does not change the scale.
  aim() {
    const { clientWidth: width, clientHeight: height } = this.canvas, [low, high] = this.box;
    const sin = Math.sin(this.azimuth), cos = Math.cos(this.azimuth), up = Math.cos(this.elevation), lean = Math.sin(this.elevation);
    this.axes = this.spatial ? [[-sin, cos, 0], [-lean * cos, -lean * sin, up], [up * cos, up * sin, lean]] : [[1, 0], [0, 1], [0, 0]];
    this.middle = low.map((x, i) => (x + high[i]) / 2);
    const extent = axis => axis.reduce((sum, a, i) => sum + Math.abs(a) * (high[i] - low[i]), 0);
    const margin = Math.min(56, 0.14 * Math.min(width, height));
    const wide = extent(this.axes[0]), tall = extent(this.axes[1]), least = 0.02 * Math.max(wide, tall) || 1;
    this.unit ??= Math.max(1e-300, Math.min((width - 2 * margin) / Math.max(wide, least), (height - 2 * margin) / Math.max(tall, least)));
    this.scale = this.unit * this.zoom;
    this.corner = [width / 2 + this.shift[0], height / 2 + this.shift[1]];
    this.paths = null;
  }

  // Pixels, and the distance toward the eye.
  see(x) {
    const [right, up, near] = this.axes, seen = [0, 0, 0];
    for (let i = 0; i < right.length; i++) {
      const d = x[i] - this.middle[i];
      seen[0] += right[i] * d;
      seen[1] += up[i] * d;
      seen[2] += near[i] * d;
    }
    return [this.corner[0] + this.scale * seen[0], this.corner[1] - this.scale * seen[1], seen[2]];
  }

  listen() {
    const fingers = new Map();
    let spread = 0;
    this.canvas.addEventListener("pointerdown", event => {
      this.canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, event);
      spread = 0;
    });
    this.canvas.addEventListener("pointermove", event => {
      const last = fingers.get(event.pointerId);
      this.pointer = [event.offsetX, event.offsetY];
      if (!last) { draw(); return; }
      fingers.set(event.pointerId, event);
      const [dx, dy] = [event.clientX - last.clientX, event.clientY - last.clientY];
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()], now = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
        if (spread) this.magnify(now / spread, (a.offsetX + b.offsetX) / 2, (a.offsetY + b.offsetY) / 2);
        spread = now;
      } else if (this.spatial && !event.shiftKey) {
        this.azimuth -= 0.008 * dx;
        this.elevation = Math.min(Math.max(this.elevation + 0.008 * dy, -1.55), 1.55);
      } else {
        this.shift = [this.shift[0] + dx, this.shift[1] + dy];
      }
      this.aim();
      draw();
    });
    for (const kind of ["pointerup", "pointercancel"]) this.canvas.addEventListener(kind, event => fingers.delete(event.pointerId));
    this.canvas.addEventListener("pointerleave", () => { this.pointer = null; draw(); });
    this.canvas.addEventListener("wheel", event => {
      if (!(event.ctrlKey || event.metaKey) && document.documentElement.scrollHeight > window.innerHeight) return; // the page scrolls
      event.preventDefault();
      this.magnify(Math.exp(-0.0015 * event.deltaY), event.offsetX, event.offsetY);
    }, { passive: false });
    this.canvas.addEventListener("dblclick", () => this.reset());
  }

  magnify(factor, x, y) {
    const zoom = Math.min(Math.max(this.zoom * factor, 0.05), 1e4), change = zoom / this.zoom;
    this.shift = [0, 1].map(i => ([x, y][i] - this.corner[i]) * (1 - change) + this.shift[i]);
    this.zoom = zoom;
    this.aim();
    draw();
  }

  draw(t) {
    const { context: c, run } = this;
    run.at(t);
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    c.lineCap = c.lineJoin = "round";
    this.colour = colour(runs.length > 1 ? `c${run.number % 7}` : "accent");
    const seen = run.names.map((_, k) => this.see(run.point(k)));
    this.ruler(c);
    if (this.spatial) this.floor(c);
    this.guides(c);
    if (showPaths) this.trails(c);
    const parts = this.parts(c, seen);
    if (this.spatial) parts.sort((a, b) => a.far - b.far || a.depth - b.depth);
    for (const part of parts) part.draw();
    this.name(c, seen);
    const over = run.way * (t - run.span[1]) > 1e-9 * Math.abs(run.span[1] - run.span[0]);
    this.state.textContent = over ? `ended at t = ${shown(run.span[1], 5)}` : "";
  }

  line(c, points, closed = false) {
    c.beginPath();
    points.forEach(([x, y], k) => (k ? c.lineTo(x, y) : c.moveTo(x, y)));
    if (closed) c.closePath();
  }

  parts(c, seen) {
    const { run } = this, still = new Set(run.ground), parts = [], thin = run.many ? 0.5 : 1;
    const frame = colour("frame"), card = colour("card"), joint = colour("joint");
    const depth = group => group.reduce((sum, k) => sum + seen[k][2], 0) / group.length;
    for (const body of run.bodies) {
      const fixed = body.every(k => still.has(k));
      parts.push({ far: fixed ? 0 : 1, depth: depth(body), draw: () => {
        this.line(c, body.map(k => seen[k]), true);
        c.fillStyle = fixed ? frame : this.colour;
        c.globalAlpha = this.spatial ? 1 : fixed ? 0.28 : 0.16;
        if (this.spatial) c.fillStyle = mixed(c.fillStyle, card, dark.matches ? 0.7 - 0.5 * this.light(body) : 0.25 + 0.5 * this.light(body));
        c.fill();
        c.globalAlpha = this.spatial ? 0.35 : 1;
        c.strokeStyle = fixed ? frame : this.colour;
        c.lineWidth = this.spatial ? 0.8 : fixed ? 1.2 : 2;
        c.stroke();
        c.globalAlpha = 1;
      } });
    }
    for (const pair of run.springs) parts.push({ far: 1, depth: depth(pair), draw: () => {
      this.line(c, coil(seen[pair[0]], seen[pair[1]]));
      c.strokeStyle = frame;
      c.lineWidth = 1.6;
      c.stroke();
    } });
    for (const pair of run.links) parts.push({ far: 1, depth: depth(pair), draw: () => {
      this.line(c, pair.map(k => seen[k]));
      c.strokeStyle = this.colour;
      c.lineWidth = 6 * thin;
      c.stroke();
    } });
    const disc = (k, radius, fill, stroke, width) => parts.push({ far: 1, depth: seen[k][2] + 1e-9, draw: () => {
      c.beginPath();
      c.arc(seen[k][0], seen[k][1], radius, 0, 7);
      c.fillStyle = fill;
      c.fill();
      if (!stroke) return;
      c.strokeStyle = stroke;
      c.lineWidth = width;
      c.stroke();
    } });
    if (!run.many) for (const k of run.joints) disc(k, 4.5, joint, this.colour, 2.2);
    for (const k of run.masses) disc(k, 9 * thin, this.colour, card, 2);
    for (const k of run.sliders) parts.push({ far: 1, depth: seen[k][2], draw: () => this.slider(c, seen[k], k) });
    const outlined = new Set(run.bodies.flat());
    for (const k of run.ground) if (!outlined.has(k)) {
      if (this.spatial || run.loose.has(k)) disc(k, run.loose.has(k) ? 8 : 5.5, frame, card, 1.5);
      else parts.push({ far: 1, depth: 0, draw: () => this.support(c, seen[k]) });
    }
    return parts;
  }

  // How much a face is turned toward the light.
  light(body) {
    const [a, b, d] = [body[0], body[Math.floor(body.length / 3)], body[Math.floor(2 * body.length / 3)]].map(k => this.run.point(k));
    const u = [0, 1, 2].map(i => b[i] - a[i]), w = [0, 1, 2].map(i => d[i] - a[i]);
    const n = [u[1] * w[2] - u[2] * w[1], u[2] * w[0] - u[0] * w[2], u[0] * w[1] - u[1] * w[0]];
    return Math.abs(0.3 * n[0] + 0.4 * n[1] + 0.866 * n[2]) / (Math.hypot(...n) || 1);
  }

  support(c, [x, y]) {
    const frame = colour("frame");
    c.strokeStyle = c.fillStyle = frame;
    c.lineWidth = 1.5;
    this.line(c, [[x, y], [x - 9, y + 15], [x + 9, y + 15]], true);
    c.globalAlpha = 0.25;
    c.fill();
    c.globalAlpha = 1;
    c.stroke();
    this.line(c, [[x - 14, y + 15], [x + 14, y + 15]]);
    c.stroke();
    c.lineWidth = 1;
    for (let k = -12; k <= 12; k += 6) {
      this.line(c, [[x + k, y + 15], [x + k - 5, y + 20]]);
      c.stroke();
    }
    c.beginPath();
    c.arc(x, y, 4.5, 0, 7);
    c.fillStyle = colour("joint");
    c.fill();
    c.lineWidth = 2;
    c.stroke();
  }

  slider(c, [x, y], k) {
    const guide = this.run.guides[this.run.sliders.indexOf(k)];
    c.save();
    c.translate(x, y);
    if (guide) {
      const [a, b] = this.ends(guide);
      c.rotate(Math.atan2(b[1] - a[1], b[0] - a[0]));
    }
    c.beginPath();
    c.roundRect(-15, -9, 30, 18, 4);
    c.fillStyle = mixed(this.colour, colour("card"), 0.3);
    c.strokeStyle = this.colour;
    c.lineWidth = 2;
    c.fill();
    c.stroke();
    c.beginPath();
    c.arc(0, 0, 3.5, 0, 7);
    c.fillStyle = colour("joint");
    c.fill();
    c.stroke();
    c.restore();
  }

  ends(guide) { return guide.map(place => this.see(place.map((x, i) => x + this.run.origin[i]))); }

  guides(c) {
    c.strokeStyle = colour("frame");
    for (const guide of this.run.guides) if (guide) {
      const [a, b] = this.ends(guide), length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
      const [ux, uy] = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
      const [begin, end] = [[a[0] - 34 * ux, a[1] - 34 * uy], [b[0] + 34 * ux, b[1] + 34 * uy]];
      c.lineWidth = 1.2;
      c.globalAlpha = 0.7;
      for (const side of this.spatial ? [0] : [-11, 11]) {
        this.line(c, [begin, end].map(([x, y]) => [x - side * uy, y + side * ux]));
        c.stroke();
      }
      c.globalAlpha = 1;
    }
  }

  // Whole paths, pale, and the last second of them.
  trails(c) {
    const { run } = this, last = run.frames - 1;
    this.paths ??= run.traces.filter(k => k < run.movers).map(k => {
      const places = Array.from({ length: run.frames }, (_, frame) => this.see(run.stored(k, frame)));
      const path = new Path2D();
      smooth(path, places);
      const x = places.map(place => place[0]), y = places.map(place => place[1]);
      const way = places.reduce((sum, place, j) => sum + (j ? Math.hypot(place[0] - x[j - 1], place[1] - y[j - 1]) : 0), 0);
      const extent = Math.max(Math.max(...x) - Math.min(...x), Math.max(...y) - Math.min(...y), 1);
      return { places, path, alpha: Math.min(0.4, Math.max(0.07, 8 * extent / way)) };
    });
    c.strokeStyle = runs.length > 1 ? this.colour : colour("trace");
    for (const { places, path, alpha } of this.paths) {
      c.globalAlpha = alpha;
      c.lineWidth = 1.3;
      c.stroke(path);
      const tail = Math.max(2, Math.abs(1.1 * rate / (run.span[1] - run.span[0])) * last), now = run.frame, pieces = 24;
      c.lineWidth = 2.6;
      c.lineCap = "butt";
      for (let piece = 0; piece < pieces; piece++) {
        const [from, to] = [piece, piece + 1].map(part => now - tail * (1 - part / pieces));
        if (to <= 0) continue;
        const at = frame => between(places, Math.max(frame, 0)), fine = Math.ceil(3 * (to - from));
        c.globalAlpha = ((piece + 1) / pieces) ** 1.5 * 0.95;
        this.line(c, Array.from({ length: fine + 1 }, (_, j) => at(from + (to - from) * j / fine)));
        c.stroke();
      }
      c.lineCap = "round";
    }
    c.globalAlpha = 1;
  }

  // A grid below a mechanism in space, and its shadow there.
  floor(c) {
    const [low, high] = this.box, { run } = this, step = nice(Math.max(high[0] - low[0], high[1] - low[1]) / 8) || 1;
    const level = low[2] - 0.04 * Math.max(...high.map((x, i) => x - low[i]));
    const from = [0, 1].map(i => Math.floor(low[i] / step - 0.5) * step), to = [0, 1].map(i => Math.ceil(high[i] / step + 0.5) * step);
    c.strokeStyle = colour("line");
    c.lineWidth = 1;
    for (const i of [0, 1]) for (let x = from[i]; x <= to[i] + step / 2; x += step) {
      const ends = [from[1 - i], to[1 - i]].map(y => this.see(i ? [y, x, level] : [x, y, level]));
      this.line(c, ends);
      c.stroke();
    }
    const shade = group => group.map(k => { const [x, y] = run.point(k); return this.see([x, y, level]); });
    c.globalAlpha = 0.09;
    c.fillStyle = c.strokeStyle = colour("ink");
    c.lineWidth = 5;
    const path = new Path2D(), still = new Set(run.ground);
    for (const body of run.bodies) if (!body.every(k => still.has(k))) {
      shade(body).forEach(([x, y], k) => (k ? path.lineTo(x, y) : path.moveTo(x, y)));
      path.closePath();
    }
    c.fill(path, "nonzero");
    for (const pair of run.links) { this.line(c, shade(pair)); c.stroke(); }
    for (const k of run.masses) {
      const [x, y] = shade([k])[0];
      c.beginPath();
      c.ellipse(x, y, 9, 9 * Math.abs(Math.sin(this.elevation)), 0, 0, 7);
      c.fill();
    }
    c.globalAlpha = 1;
  }

  // How long things are.
  ruler(c) {
    const step = nice(110 / this.scale), length = step * this.scale, height = this.canvas.clientHeight;
    const [x, y] = [14, height - 14];
    c.strokeStyle = c.fillStyle = colour("faint");
    c.lineWidth = 1.2;
    this.line(c, [[x, y - 4], [x, y], [x + length, y], [x + length, y - 4]]);
    c.stroke();
    c.font = "12px system-ui, sans-serif";
    c.textAlign = "left";
    c.fillText(shown(step, 3), x + 4, y - 6);
  }

  // The point below the pointer.
  name(c, seen) {
    if (!this.pointer) return;
    const distance = seen.map(([x, y]) => Math.hypot(x - this.pointer[0], y - this.pointer[1]));
    const k = distance.indexOf(Math.min(...distance));
    if (!(distance[k] < 14)) return;
    const text = `${this.run.names[k]}  (${Array.from(this.run.point(k), x => shown(x, 4)).join(", ")})`;
    c.font = "12.5px system-ui, sans-serif";
    const width = c.measureText(text).width + 16, x = Math.min(seen[k][0] + 12, this.canvas.clientWidth - width - 4), y = Math.max(seen[k][1] - 34, 4);
    c.beginPath();
    c.roundRect(x, y, width, 24, 6);
    c.fillStyle = colour("ink");
    c.fill();
    c.fillStyle = colour("card");
    c.fillText(text, x + 8, y + 16.5);
  }
}

function coil(a, b, turns = 8, width = 7) {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]], length = Math.hypot(dx, dy) || 1, [nx, ny] = [-dy / length, dx / length];
  const points = [a], lead = 0.14;
  points.push([a[0] + lead * dx, a[1] + lead * dy]);
  for (let k = 0; k < 2 * turns; k++) {
    const x = lead + (1 - 2 * lead) * (k + 0.5) / (2 * turns), side = k % 2 ? width : -width;
    points.push([a[0] + x * dx + side * nx, a[1] + x * dy + side * ny]);
  }
  points.push([b[0] - lead * dx, b[1] - lead * dy], b);
  return points;
}

// Between frames, the cubic of Run.at.
function between(places, frame) {
  const last = places.length - 1, k = Math.min(Math.floor(frame), Math.max(last - 1, 0)), x = frame - k;
  const weights = [x * (-0.5 + x * (1 - 0.5 * x)), 1 + x * x * (1.5 * x - 2.5), x * (0.5 + x * (2 - 1.5 * x)), x * x * (0.5 * x - 0.5)];
  return [0, 1].map(i => weights.reduce((sum, weight, j) => sum + weight * places[Math.min(Math.max(k - 1 + j, 0), last)][i], 0));
}

// The same cubic as a curve.
function smooth(path, places) {
  const at = k => places[Math.min(Math.max(k, 0), places.length - 1)];
  path.moveTo(...at(0).slice(0, 2));
  for (let k = 0; k + 1 < places.length; k++) {
    const [a, b, c, d] = [at(k - 1), at(k), at(k + 1), at(k + 2)];
    path.bezierCurveTo(b[0] + (c[0] - a[0]) / 6, b[1] + (c[1] - a[1]) / 6, c[0] - (d[0] - b[0]) / 6, c[1] - (d[1] - b[1]) / 6, c[0], c[1]);
  }
}

function mixed(first, second, share) {
  const parse = text => [1, 3, 5].map(i => parseInt(text.slice(i, i + 2), 16)), a = parse(first), b = parse(second);
  return `rgb(${a.map((x, i) => Math.round(x + share * (b[i] - x))).join(" ")})`;
}

function shown(x, digits) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  return size < 1e-4 || size >= 1e6 ? x.toExponential(Math.min(digits - 1, 3)).replace("e+", "e").replace(/-/g, "−") : String(+x.toPrecision(digits)).replace("-", "−");
}

// ---------------------------------------------------------------- graphs

class Graph {
  constructor(panel, parent) {
    this.panel = panel;
    const told = curve => curve.panel === panel && (runs.length === 1 || panel !== "energy" || curve.name === "total");
    this.curves = runs.flatMap(run => run.curves.filter(told).map((curve, k) => (
      { ...curve, run, colour: `c${(runs.length > 1 ? run.number : k) % 7}`, dash: runs.length > 1 ? DASHES[k % 4] : "solid" })));
    if (!this.curves.length) return;
    const extreme = (which, start) => this.curves.reduce((found, curve) => curve.y.reduce((a, b) => which(a, Math.abs(b)), found), start);
    this.size = extreme(Math.max, 0);
    this.flat = panel === "energy" && this.size - extreme(Math.min, Infinity) < 0.02 * this.size; // noise is not worth a closer look
    this.decades = [Math.floor(Math.log10(extreme(Math.min, 1e-8))), Math.ceil(Math.log10(Math.max(this.size, 1e-14)))];
    const card = element(parent, "section", { className: "graph" });
    if (panel === "coordinates") card.classList.add("wide");
    const heading = element(card, "header");
    element(heading, "h2", {}, PANELS[panel]);
    const chips = element(heading, "ul", { className: "chips" });
    for (const curve of this.curves) {
      const label = runs.length > 1 ? `${curve.run.title}: ${curve.name}` : curve.name;
      const chip = element(chips, "li");
      element(chip, "span", { className: "line", style: `border-color: var(--${curve.colour}); border-top-style: ${{ solid: "solid", dash: "dashed", dot: "dotted", dashdot: "dashed" }[curve.dash]}` });
      chip.append(label);
      curve.value = element(chip, "output");
      curve.label = label;
    }
    this.div = element(card, "div", { className: "plot" });
    this.div.setAttribute("role", "img");
    this.div.setAttribute("aria-label", `${PANELS[panel]} over time: ${this.curves.map(curve => curve.label).join(", ")}`);
    this.cursor = element(this.div, "div", { className: "cursor", hidden: true });
  }

  async plot() {
    const traces = this.curves.map(curve => ({ x: curve.t, y: curve.y, name: curve.label, mode: curve.t.length > 1 ? "lines" : "markers" }));
    await Plotly.newPlot(this.div, traces, {}, { displayModeBar: false, responsive: true, doubleClick: "reset", showTips: false });
    await this.paint();
    this.div.append(this.cursor);
    this.cursor.hidden = false;
    this.div.on("plotly_click", event => { pause(); seek(event.points[0].x); });
    this.div.on("plotly_relayout", change => this.follow(change));
    this.div.on("plotly_afterplot", () => this.mark(time));
    this.mark(time);
  }

  // Colours of the page, which change with the system's theme.
  async paint() {
    const axis = { gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("line"), tickfont: { size: 11 }, automargin: true };
    const log = this.panel === "drift" ? { type: "log", exponentformat: "e", range: this.decades, dtick: Math.ceil((this.decades[1] - this.decades[0]) / 6) }
      : { exponentformat: "e", nticks: 6, rangemode: this.flat ? "tozero" : "normal" };
    await Plotly.update(this.div, { line: this.curves.map(curve => ({ color: colour(curve.colour), width: 1.7, dash: curve.dash, shape: this.panel !== "drift" && curve.t.length < 600 ? "spline" : "linear" })) }, {
      margin: { l: 8, r: 10, t: 8, b: 8 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, hovermode: "x unified", dragmode: "zoom",
      font: { family: getComputedStyle(document.body).fontFamily, color: colour("soft"), size: 12 },
      hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink"), size: 11.5 } },
      xaxis: { ...axis, title: { text: "time t", font: { size: 11.5 }, standoff: 4 }, range: clock.slice(), zeroline: false },
      yaxis: { ...axis, ...log } });
  }

  // All graphs show the same interval.
  follow(change) {
    const keys = Object.keys(change).filter(key => key.startsWith("xaxis"));
    if (!keys.length || Graph.following) return;
    Graph.following = true;
    const wanted = "xaxis.range[0]" in change ? { "xaxis.range": [change["xaxis.range[0]"], change["xaxis.range[1]"]] } : { "xaxis.range": clock.slice() };
    Promise.all(graphs.filter(graph => graph !== this).map(graph => Plotly.relayout(graph.div, wanted))).finally(() => { Graph.following = false; });
  }

  mark(t) {
    for (const curve of this.curves) {
      const value = curve.y[before(curve.t, t, curve.run.way)];
      const text = this.panel === "drift" ? value.toExponential(1).replace("e+", "e").replace("-", "−") : shown(Math.abs(value) < 1e-6 * this.size ? 0 : value, 5);
      if (curve.value.textContent !== text) curve.value.textContent = text;
    }
    const layout = this.div._fullLayout;
    if (!layout) return;
    const { xaxis, yaxis } = layout, x = xaxis.l2p(t);
    this.cursor.style.visibility = x < -1 || x > xaxis._length + 1 ? "hidden" : "visible";
    this.cursor.style.transform = `translate(${xaxis._offset + x}px, ${yaxis._offset}px)`;
    this.cursor.style.height = `${yaxis._length}px`;
  }
}

// Index of the last time that has come.
function before(times, t, way) {
  let low = 0, high = times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (way * (times[middle] - t) <= 1e-12 * Math.abs(t)) low = middle; else high = middle - 1;
  }
  return low;
}

// ---------------------------------------------------------------- the clock

const runs = DATA.runs.map((run, number) => new Run(run, number));
const way = runs.some(run => run.span[1] < run.span[0]) ? -1 : 1;
const clock = [Math.min(...runs.map(run => way * run.span[0])) * way, Math.max(...runs.map(run => way * run.span[1])) * way];
const length = Math.abs(clock[1] - clock[0]);
const natural = length >= 2 && length <= 40 ? 1 : nice(Math.max(length, 1e-300) / 12);
let time = clock[0], playing = false, speed = 1, rate = natural, loop = true, showPaths = true, wanted = false, last = null;
const counted = { frames: 0 };

function draw() {
  if (wanted) return;
  wanted = true;
  requestAnimationFrame(frame);
}

function frame(now) {
  wanted = false;
  if (playing) {
    if (last !== null) advance((now - last) / 1000);
    last = now;
    draw();
  }
  counted.frames += 1;
  for (const stage of stages) stage.draw(time);
  for (const graph of graphs) graph.mark(time);
  $("scrub").value = length ? Math.abs(time - clock[0]) / length : 0;
  const text = shown(+time.toFixed(decimals), 12), digits = time.toFixed(decimals).replace("-", "−");
  $("scrub").setAttribute("aria-valuetext", `t = ${text}`);
  $("clock").innerHTML = `t = ${digits} <span>/ ${shown(clock[1], 5)}</span>`;
}

function advance(seconds) {
  time += way * rate * Math.min(seconds, 0.25);
  if (way * (time - clock[1]) < 0) return;
  if (loop && length) time = clock[0] + (time - clock[1]) % length;
  else { time = clock[1]; pause(); }
}

function play() {
  if (!loop && way * (time - clock[1]) >= 0) time = clock[0];
  playing = true;
  last = null;
  document.body.classList.add("playing");
  $("play").setAttribute("aria-label", "Pause");
  draw();
}

function pause() {
  playing = false;
  document.body.classList.remove("playing");
  $("play").setAttribute("aria-label", "Play");
  draw();
}

function seek(t) {
  time = way * Math.min(Math.max(way * t, way * clock[0]), way * clock[1]);
  draw();
}

function setSpeed(value) {
  speed = value;
  rate = natural * speed;
  $("speed").value = speed;
  draw();
}

const decimals = Math.min(Math.max(0, 3 - Math.floor(Math.log10(length || 1))), 12);
const drawn = runs.filter(run => run.names !== undefined);
const alike = drawn.every(run => run.dimension === drawn[0].dimension && run.names.join() === drawn[0].names.join());
const boxes = drawn.map(run => run.box());
const common = alike && drawn.length ? [0, 1].map(side => boxes[0][side].map((_, i) => Math[side ? "max" : "min"](...boxes.map(box => box[side][i])))) : null;
const stages = [], graphs = [];
for (const [k, run] of drawn.entries()) stages.push(new Stage(run, common ?? boxes[k], $("stages")));
graphs.push(...Object.keys(PANELS).map(panel => new Graph(panel, $("graphs"))).filter(graph => graph.curves.length));
$("stages").hidden = !stages.length;
for (const id of ["paths", "fit"]) $(id).hidden = !stages.length;

$("about").textContent = runs.length === 1 ? runs[0].small : `${runs.length} runs, one clock`;
$("small").textContent = [
  ...(runs.length > 1 ? runs.map(run => `${run.title}: ${run.small}`) : []),
  ...runs.filter(run => run.trouble).map(run => `${runs.length > 1 ? `${run.title} ` : ""}did not reach its end: ${run.trouble}`),
  natural === 1 ? "1× is real time" : `at 1× a second shows ${shown(natural, 3)} of t`].join(" · ");
for (const value of SPEEDS) element($("speed"), "option", { value, selected: value === 1 }, `${value}×`);

$("play").addEventListener("click", () => (playing ? pause() : play()));
$("scrub").addEventListener("input", () => { pause(); seek(clock[0] + way * $("scrub").value * length); });
$("speed").addEventListener("change", () => setSpeed(+$("speed").value));
const toggle = (id, value) => { $(id).setAttribute("aria-pressed", value); draw(); return value; };
$("loop").addEventListener("click", () => { loop = toggle("loop", !loop); });
$("paths").addEventListener("click", () => { showPaths = toggle("paths", !showPaths); });
$("fit").addEventListener("click", () => stages.forEach(stage => stage.reset()));

window.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("select")) return;
  const faster = change => setSpeed(SPEEDS[Math.min(Math.max(SPEEDS.indexOf(speed) + change, 0), SPEEDS.length - 1)]);
  const step = change => { pause(); seek(time + way * change * length / (event.shiftKey ? 20 : 200)); };
  const actions = { " ": () => (playing ? pause() : play()), ArrowLeft: () => step(-1), ArrowRight: () => step(1), ArrowUp: () => faster(1), ArrowDown: () => faster(-1),
    Home: () => seek(clock[0]), End: () => seek(clock[1]), l: () => $("loop").click(), p: () => $("paths").click(), f: () => $("fit").click() };
  if (!(event.key in actions) || (event.key === " " && event.target.closest?.("button"))) return;
  event.preventDefault();
  actions[event.key]();
});
dark.addEventListener("change", () => { theme = {}; for (const graph of graphs) graph.paint(); draw(); });

// plotly.js lies in the page compressed.
async function loadPlotly() {
  const bytes = Uint8Array.from(atob($("plotly").textContent), letter => letter.charCodeAt(0));
  const source = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  element(document.head, "script", { textContent: source });
  $("plotly").remove();
}

const ready = loadPlotly().then(() => Promise.all(graphs.map(graph => graph.plot())));
ready.catch(error => element($("graphs"), "p", { role: "alert" }, `The graphs cannot be shown by this browser: ${error.message}`));
if (length && !matchMedia("(prefers-reduced-motion: reduce)").matches) play();
else draw();

window.player = { ready, play, pause, seek, setSpeed, runs, stages, graphs, counted, get time() { return time; }, get playing() { return playing; }, clock, natural };
