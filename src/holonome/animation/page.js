// Player of a page: draws the mechanism on canvases, the graphs with Plotly, and keeps one clock for all.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8];
const PANELS = { coordinates: "Coordinates", energy: "Energy", drift: "Drift" };
const heading = panel => PANELS[panel] ?? panel;
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
    this.reads();
    const outlines = new Set(this.bodies.flat()), held = new Set([...this.ground, ...this.sliders]), all = this.names.map((_, k) => k);
    this.joints = all.filter(k => degree[k] > 1 && !held.has(k));
    const loose = k => (this.links.length + this.springs.length + this.bodies.length ? degree[k] === 1 && !this.bodies.length : true);
    this.masses = all.filter(k => !held.has(k) && loose(k));
    this.loose = new Set(this.symbols.length || this.circles.length ? [] : this.ground.filter(k => degree[k] === 0));
    this.many = !this.symbols.length && this.names.length - outlines.size > 30;
    if (this.symbols.length) this.joints = [];
    if (this.symbols.length || this.circles.length) this.masses = this.symbols.filter(([kind]) => kind === "mass").map(([, k]) => k);
    this.at(this.span[0]);
    this.radii = this.circles.map(([center, rim]) => this.distance(center, rim));
    const edges = this.bodies.flatMap(body => body.map((k, i) => this.distance(k, body[(i + 1) % body.length])));
    this.measure = Math.max(0, ...this.links.map(pair => this.distance(...pair)), ...this.radii.map(radius => 2 * radius), ...edges);
  }

  // Points that only help to draw have no names to show: corners of solids, directions, forces.
  reads() {
    const spatial = this.dimension === 3, helpers = [...this.circles.flatMap(circle => circle.slice(1)), ...this.symbols.flatMap(symbol => symbol.slice(2)),
      ...this.tracks.flat(), ...this.forces.flatMap(force => force.ends), ...(spatial && this.bodies.length > 5 ? this.bodies.flat() : [])];
    const shown = new Set([...this.links, ...this.springs, ...this.lines, ...this.symbols.map(symbol => [symbol[1]]), this.ground, this.traces].flat());
    this.helpers = new Set(helpers.filter(k => !shown.has(k)));
  }

  distance(i, j) { return Math.hypot(...Array.from(this.point(i), (x, axis) => x - this.point(j)[axis])); }

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
    const arrows = new Set(this.forces.flatMap(force => force.ends)), of = j => Math.floor(j / this.dimension) % this.movers;
    this.track.forEach((x, j) => arrows.has(of(j)) || include(x + this.origin[j % this.dimension], j % this.dimension));
    for (const place of this.fixed) place.forEach((x, i) => include(x + this.origin[i], i));
    for (const { ends: [begin, end], moment } of this.forces) for (let frame = 0; frame < this.frames; frame++) {
      if (moment || end >= this.movers) continue;
      const tip = this.stored(end, frame), from = begin < this.movers ? this.stored(begin, frame) : this.point(begin);
      if (Math.hypot(...tip.map((x, i) => x - from[i])) <= 1.25 * this.reach) tip.forEach(include); // short peaks may lead out of the picture
    }
    this.circles.forEach(([center], k) => {
      const places = center < this.movers ? Array.from({ length: this.frames }, (_, frame) => this.stored(center, frame)) : [this.point(center)];
      for (const place of places) for (const side of [-1, 1]) place.forEach((x, i) => include(x + side * this.radii[k], i));
    });
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
    this.size = this.run.symbols.length && this.run.measure ? Math.min(Math.max(this.run.measure * this.scale / 110, 0.3), 1.15) : 1; // of symbols and bars
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
    for (const track of run.tracks) if (this.spatial) this.plane(c, track); else this.rail(c, track);
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
    const { run } = this, parts = [], thin = run.many ? 0.5 : this.size;
    const frame = colour("frame"), card = colour("card"), joint = colour("joint");
    const depth = group => group.reduce((sum, k) => sum + seen[k][2], 0) / group.length;
    const stroke = (pair, style, width, points = pair.map(k => seen[k])) => parts.push({ far: 1, depth: depth(pair), draw: () => {
      this.line(c, points);
      c.strokeStyle = style;
      c.lineWidth = width;
      c.stroke();
    } });
    this.faces(c, parts, seen);
    run.circles.forEach((circle, k) => parts.push({ far: 1, depth: seen[circle[0]][2], draw: () => this.wheel(c, circle, run.radii[k], seen) }));
    for (const pair of run.springs) stroke(pair, frame, 1.6, coil(seen[pair[0]], seen[pair[1]], 8, 7 * this.size));
    for (const pair of run.lines) this.pieces(pair, (points, near) => parts.push({ far: 1, depth: near, draw: () => this.bar(c, points, frame, 1.8) }));
    for (const pair of run.links) this.pieces(pair, (points, near) => parts.push({ far: 1, depth: near, draw: () => this.bar(c, points, this.colour, 6 * thin) }));
    const disc = (k, radius, fill, edge, width, above = 1e-9) => parts.push({ far: 1, depth: seen[k][2] + above, draw: () => this.disc(c, seen[k], radius, fill, edge, width) });
    if (!run.many) for (const k of run.joints) disc(k, 4.5, joint, this.colour, 2.2);
    for (const k of run.masses) disc(k, 9 * thin, this.colour, card, 2);
    const marked = new Set(run.symbols.map(symbol => symbol[1]));
    for (const k of run.sliders) if (!(this.spatial && marked.has(k))) parts.push({ far: 1, depth: seen[k][2], draw: () => this.slider(c, seen[k], this.guideAngle(k), Math.max(this.size, 0.5)) });
    const outlined = new Set(run.bodies.flat());
    for (const k of run.ground) if (!outlined.has(k) || run.symbols.length) {
      if (this.spatial && run.symbols.length) disc(k, 9 * this.size, frame, card, 1.5);
      else if (this.spatial || run.loose.has(k)) disc(k, run.loose.has(k) ? 8 : 5.5, frame, card, 1.5);
      else parts.push({ far: 1, depth: 0, draw: () => this.scaled(c, seen[k], at => this.support(c, at)) });
    }
    const above = 0.02 * Math.max(...this.box[1].map((x, i) => x - this.box[0][i]));
    for (const [kind, k, ...toward] of run.symbols) if (kind !== "mass") parts.push({ far: 1, depth: seen[k][2] + above, draw: () => this.scaled(c, seen[k], at => this.symbol(c, kind, at, toward.map(j => this.direction(k, j)))) });
    for (const ends of run.arrows) parts.push({ far: 2, depth: 0, draw: () => this.arrow(c, ...ends.map(k => seen[k]), this.colour) });
    for (const { name, ends, moment } of run.forces) parts.push({ far: 2, depth: 0, draw: () => this.force(c, ends, seen, name, moment) });
    return parts;
  }

  bar(c, points, style, width) {
    this.line(c, points);
    c.strokeStyle = style;
    c.lineWidth = width;
    c.stroke();
  }

  disc(c, [x, y], radius, fill, edge, width) {
    c.beginPath();
    c.arc(x, y, radius, 0, 7);
    c.fillStyle = fill;
    c.fill();
    if (!edge) return;
    c.strokeStyle = edge;
    c.lineWidth = width;
    c.stroke();
  }

  // A long thing in space is drawn in pieces, so that what is in front of one end may be behind the other.
  get grain() { return Math.max(...this.box[1].map((x, i) => x - this.box[0][i])) / 10 || 1; }

  pieces([i, j], draw) {
    const { run } = this, count = this.spatial && !run.many ? Math.min(Math.ceil(run.distance(i, j) / this.grain), 24) || 1 : 1;
    const [a, b] = [run.point(i), run.point(j)], at = x => this.see(Array.from(a, (start, axis) => start + x * (b[axis] - start)));
    for (let k = 0; k < count; k++) {
      const ends = [at(k / count), at((k + 1) / count)];
      draw(ends, (ends[0][2] + ends[1][2]) / 2);
    }
  }

  faces(c, parts, seen) {
    const { run } = this, still = new Set(run.ground), card = colour("card"), solid = run.bodies.length > 5;
    for (const [number, body] of run.bodies.entries()) {
      if (this.hidden(number)) continue;
      const fixed = body.every(k => still.has(k)), plain = fixed ? colour("frame") : this.colour;
      const fill = this.spatial ? this.shade(plain, card, this.light(body)) : plain;
      const draw = (outline, edge) => {
        this.line(c, outline, true);
        c.fillStyle = fill;
        c.globalAlpha = this.spatial ? 1 : fixed ? 0.28 : 0.16;
        c.fill();
        c.globalAlpha = this.spatial && !solid ? 0.35 : 1;
        c.strokeStyle = solid && this.spatial ? fill : plain;
        c.lineWidth = edge;
        c.stroke();
        c.globalAlpha = 1;
      };
      if (!this.spatial || body.length !== 4 || run.bodies.length > 2500) {
        const depth = body.reduce((sum, k) => sum + seen[k][2], 0) / body.length;
        parts.push({ far: fixed ? 0 : 1, depth, draw: () => draw(body.map(k => seen[k]), this.spatial ? 0.8 : fixed ? 1.2 : 2) });
      } else for (const cell of this.cells(body)) parts.push({ far: fixed ? 0 : 1, depth: cell.reduce((sum, x) => sum + x[2], 0) / 4, draw: () => draw(cell, 0.8) });
    }
  }

  shade(plain, card, light) { return mixed(plain, dark.matches ? "#000000" : card, dark.matches ? 0.62 - 0.55 * light : 0.08 + 0.6 * light); }

  // A face with four corners in pieces as small as the grain.
  cells(body) {
    const { run } = this, [a, b, d, e] = body.map(k => run.point(k)), most = 14;
    const count = (i, j) => Math.max(1, Math.min(Math.ceil(run.distance(body[i], body[j]) / this.grain), most));
    const rows = Math.max(count(0, 1), count(2, 3)), columns = Math.max(count(1, 2), count(3, 0));
    const at = (x, y) => this.see([0, 1, 2].map(i => (1 - x) * ((1 - y) * a[i] + y * e[i]) + x * ((1 - y) * b[i] + y * d[i])));
    const grid = Array.from({ length: rows + 1 }, (_, i) => Array.from({ length: columns + 1 }, (_, j) => at(i / rows, j / columns)));
    const found = [];
    for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) found.push([grid[i][j], grid[i + 1][j], grid[i + 1][j + 1], grid[i][j + 1]]);
    return found;
  }

  // Where the points of a circle are, by the two directions of its plane.
  ring(center, u, v, from = 0, to = 2 * Math.PI, count = 48) {
    return Array.from({ length: count + 1 }, (_, k) => {
      const angle = from + (to - from) * k / count, x = Math.cos(angle), y = Math.sin(angle);
      return this.see(Array.from(center, (start, i) => start + x * u[i] + y * v[i]));
    });
  }

  wheel(c, circle, radius, seen) {
    const { run } = this, center = run.point(circle[0]), rims = circle.slice(1).map(k => Array.from(run.point(k), (x, i) => x - center[i]));
    if (this.spatial && rims.length !== 2) { this.ball(c, seen[circle[0]], center, rims, radius); return; }
    const [u, v] = this.spatial ? rims : [rims[0], [-rims[0][1], rims[0][0]]];
    this.line(c, this.ring(center, u, v, 0, 2 * Math.PI, 64), true);
    c.fillStyle = c.strokeStyle = this.colour;
    c.globalAlpha = this.spatial ? 0.3 : 0.16;
    c.fill();
    c.globalAlpha = 1;
    c.lineWidth = this.spatial ? 4 * this.size : 2.4;
    c.stroke();
    const spoke = angle => this.see(Array.from(center, (x, i) => x + Math.cos(angle) * u[i] + Math.sin(angle) * v[i]));
    for (let k = 0; k < 6; k++) {
      this.line(c, [seen[circle[0]], spoke(k * Math.PI / 3)]);
      c.globalAlpha = k ? 0.35 : 1;
      c.lineWidth = k ? 1.2 : 2;
      c.stroke();
    }
    c.globalAlpha = 1;
    this.disc(c, seen[circle[0]], 3.5 * this.size, colour("joint"), this.colour, 1.8 * this.size);
  }

  ball(c, [x, y], center, rims, radius) {
    const r = radius * this.scale, shine = c.createRadialGradient(x - 0.35 * r, y - 0.4 * r, 0.1 * r, x, y, r), card = colour("card");
    shine.addColorStop(0, this.shade(this.colour, card, 1));
    shine.addColorStop(1, this.shade(this.colour, card, 0.05));
    this.disc(c, [x, y], r, shine);
    c.strokeStyle = card;
    c.lineWidth = 1.6;
    c.globalAlpha = 0.75;
    const near = vector => vector.reduce((sum, a, i) => sum + a * this.axes[2][i], 0);
    for (const [i, j] of rims.length === 3 ? [[0, 1], [1, 2], [2, 0]] : []) { // the half of each great circle that faces the eye
      const top = Math.atan2(near(rims[j]), near(rims[i]));
      this.line(c, this.ring(center, rims[i], rims[j], top - Math.PI / 2, top + Math.PI / 2, 24));
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  // A direction in units of its length, as seen.
  direction(from, to) {
    const [a, b] = [from, to].map(k => this.see(this.run.point(k))), length = this.run.distance(from, to) * this.scale || 1;
    return [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
  }

  guideAngle(k) {
    const guide = this.run.guides[this.run.sliders.indexOf(k)];
    if (!guide) return 0;
    const [a, b] = this.ends(guide);
    return Math.atan2(b[1] - a[1], b[0] - a[0]);
  }

  // What is drawn in pixels, smaller where the mechanism is small.
  scaled(c, [x, y], paint) {
    c.save();
    c.translate(x, y);
    c.scale(this.size, this.size);
    paint([0, 0]);
    c.restore();
  }

  // The symbol of a joint.
  symbol(c, kind, [x, y], axes) {
    const joint = colour("joint"), frame = colour("frame"), axis = axes[0] ?? [0, 0];
    const along = (half, [ux, uy]) => [[x - half * ux, y - half * uy], [x + half * ux, y + half * uy]];
    const sleeve = (half, wide, cap) => {
      c.lineCap = cap;
      this.bar(c, along(half + 1.6, axis), this.colour, wide);
      this.bar(c, along(half, axis), joint, wide - 4);
      c.lineCap = "round";
    };
    if (!this.spatial && kind === "prismatic") { this.slider(c, [x, y], Math.atan2(axis[1], axis[0]), 0.75); return; }
    if (kind === "fixed") { this.clamp(c, [x, y]); return; }
    if (!this.spatial) { this.disc(c, [x, y], 4.8, joint, this.colour, 2.2); return; }
    if (kind === "revolute") sleeve(7, 11, "round");
    else if (kind === "cylindrical") sleeve(12, 12, "round");
    else if (kind === "prismatic") sleeve(9, 14, "butt");
    else if (kind === "universal") {
      this.disc(c, [x, y], 7.5, joint, this.colour, 1.8);
      for (const arm of axes) this.bar(c, along(8, arm), frame, 3);
    } else if (kind === "planar") {
      this.disc(c, [x, y], 8, joint, this.colour, 2);
      this.bar(c, [[x, y], [x + 15 * axis[0], y + 15 * axis[1]]], this.colour, 2.4);
    } else {
      const shine = c.createRadialGradient(x - 2, y - 2.4, 0.5, x, y, 6.5);
      shine.addColorStop(0, dark.matches ? "#ffffff" : joint);
      shine.addColorStop(1, mixed(this.colour, colour("card"), 0.35));
      this.disc(c, [x, y], 6, shine, this.colour, 1.6);
    }
  }

  clamp(c, [x, y]) {
    const frame = colour("frame");
    c.fillStyle = c.strokeStyle = frame;
    c.fillRect(x - 12, y - 2, 24, 4);
    c.lineWidth = 1.1;
    for (let k = -10; k <= 12; k += 5) {
      this.line(c, [[x + k, y + 2], [x + k - 5, y + 8]]);
      c.stroke();
    }
  }

  arrow(c, [x, y], [toX, toY], style, heads = 1) {
    const dx = toX - x, dy = toY - y, length = Math.hypot(dx, dy);
    if (!(length > 3)) return;
    const [ux, uy] = [dx / length, dy / length], head = Math.min(11, 0.6 * length);
    c.fillStyle = style;
    this.bar(c, [[x, y], [toX - 0.8 * head * ux, toY - 0.8 * head * uy]], style, 2.6);
    for (let k = 0; k < heads; k++) this.head(c, [toX - 0.7 * k * head * ux, toY - 0.7 * k * head * uy], [ux, uy], head);
  }

  head(c, [x, y], [ux, uy], size) {
    const [bx, by, half] = [x - size * ux, y - size * uy, 0.42 * size];
    this.line(c, [[x, y], [bx - half * uy, by + half * ux], [bx + half * uy, by - half * ux]], true);
    c.fill();
  }

  // A force is an arrow; a moment is an arc in the plane and an arrow with two heads in space.
  force(c, ends, seen, name, moment) {
    const style = colour(moment ? "moment" : "force"), [from, to] = ends.map(k => seen[k]);
    let label = to;
    if (moment && !this.spatial) {
      const sweep = Math.max(-5.2, Math.min(5.2, 4.6 * (this.run.point(ends[1])[0] - this.run.point(ends[0])[0]) / this.run.reach)), radius = 24;
      if (Math.abs(sweep) < 0.05) return;
      const start = -Math.PI / 2 + sweep / 2, end = -Math.PI / 2 - sweep / 2, way = -Math.sign(sweep);
      const short = end - way * Math.min(0.35, Math.abs(sweep) / 2);
      c.beginPath();
      c.arc(from[0], from[1], radius, start, short, sweep > 0);
      c.strokeStyle = c.fillStyle = style;
      c.lineWidth = 2.6;
      c.stroke();
      const tip = [from[0] + radius * Math.cos(end), from[1] + radius * Math.sin(end)];
      const heading = end - way * 0.2;
      this.head(c, tip, [-Math.sin(heading) * way, Math.cos(heading) * way], Math.min(11, radius * Math.abs(sweep)));
      label = [from[0] + radius + 3, from[1] - radius];
    } else {
      if (!(Math.hypot(to[0] - from[0], to[1] - from[1]) > 3)) return;
      this.arrow(c, from, to, style, moment ? 2 : 1);
    }
    c.font = "12px system-ui, sans-serif";
    c.strokeStyle = colour("card");
    c.lineWidth = 3.5;
    const [x, y] = [label[0] + 7, label[1] + (to[1] < from[1] ? -4 : 12)];
    c.strokeText(name, x, y);
    c.fillStyle = style;
    c.fillText(name, x, y);
  }

  // The normal of a face, after Newell.
  normal(body) {
    const n = [0, 0, 0], places = body.map(k => this.run.point(k)), o = places[0];
    places.forEach((a, k) => {
      const b = places[(k + 1) % places.length], [ax, ay, az, bx, by, bz] = [a[0] - o[0], a[1] - o[1], a[2] - o[2], b[0] - o[0], b[1] - o[1], b[2] - o[2]];
      n[0] += ay * bz - az * by;
      n[1] += az * bx - ax * bz;
      n[2] += ax * by - ay * bx;
    });
    return n;
  }

  // Whether a face of a solid is turned away.
  hidden(number) {
    const side = this.run.outward?.[number];
    return side && side * this.normal(this.run.bodies[number]).reduce((sum, x, i) => sum + x * this.axes[2][i], 0) <= 0;
  }

  // How much a face is turned toward the light.
  light(body) {
    const n = this.normal(body);
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

  slider(c, [x, y], angle, size = 1) {
    c.save();
    c.translate(x, y);
    c.rotate(angle);
    c.scale(size, size);
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

  // A line on which something rolls, with hatching on its right side.
  rail(c, [i, j]) {
    const { run } = this, [x, y] = this.see(run.point(i)), [ux, uy] = this.direction(i, j), frame = colour("frame");
    const { clientWidth: width, clientHeight: height } = this.canvas, far = width + height, middle = (width / 2 - x) * ux + (height / 2 - y) * uy;
    const at = along => [x + along * ux, y + along * uy];
    this.bar(c, [at(middle - far), at(middle + far)], frame, 1.8);
    c.lineWidth = 1;
    c.globalAlpha = 0.55;
    const first = Math.floor((middle - far / 2) / 11);
    for (let k = first; k < first + far / 11; k++) {
      const [px, py] = at(11 * k);
      this.line(c, [[px, py], [px - 7 * ux - 8 * uy, py - 7 * uy + 8 * ux]]);
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  // The normal of a plane, and two directions in it.
  spanned([i, j, k]) {
    const { run } = this, unit = x => { const length = Math.hypot(...x) || 1; return x.map(a => a / length); };
    const o = Array.from(run.point(i)), u = unit(o.map((x, a) => run.point(j)[a] - x)), w = unit(o.map((x, a) => run.point(k)[a] - x));
    return { o, u, w, n: unit([u[1] * w[2] - u[2] * w[1], u[2] * w[0] - u[0] * w[2], u[0] * w[1] - u[1] * w[0]]) };
  }

  // The height of a horizontal plane, which is the floor.
  ground() {
    for (const track of this.run.tracks) {
      const { o, n } = this.spanned(track);
      if (Math.abs(n[2]) > 1 - 1e-9) return o[2];
    }
    return null;
  }

  // A plane that is not horizontal.
  plane(c, track) {
    const { o, u, w, n } = this.spanned(track), [low, high] = this.box;
    if (Math.abs(n[2]) > 1 - 1e-9) return;
    const corners = [0, 1, 2, 3, 4, 5, 6, 7].map(k => [0, 1, 2].map(i => (k >> i & 1 ? high : low)[i] - o[i]));
    const [us, ws] = [u, w].map(axis => corners.map(corner => corner.reduce((sum, x, i) => sum + x * axis[i], 0)));
    const at = (x, y) => this.see(o.map((start, i) => start + x * u[i] + y * w[i])), ends = [Math.min(...us), Math.max(...us), Math.min(...ws), Math.max(...ws)];
    this.line(c, [at(ends[0], ends[2]), at(ends[1], ends[2]), at(ends[1], ends[3]), at(ends[0], ends[3])], true);
    c.fillStyle = c.strokeStyle = colour("frame");
    c.globalAlpha = 0.1;
    c.fill();
    c.globalAlpha = 0.3;
    c.lineWidth = 1;
    c.stroke();
    c.globalAlpha = 1;
  }

  // A grid below a mechanism in space, and its shadow there.
  floor(c) {
    const [low, high] = this.box, { run } = this, step = nice(Math.max(high[0] - low[0], high[1] - low[1]) / 8) || 1;
    const level = this.ground() ?? low[2] - 0.04 * Math.max(...high.map((x, i) => x - low[i]));
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
      const corners = shade(body); // all turning the same way, lest opposite faces cancel
      if (corners.reduce((sum, [x, y], k) => { const [u, v] = corners[(k + 1) % corners.length]; return sum + x * v - u * y; }, 0) < 0) corners.reverse();
      corners.forEach(([x, y], k) => (k ? path.lineTo(x, y) : path.moveTo(x, y)));
      path.closePath();
    }
    c.fill(path, "nonzero");
    for (const pair of run.links) { this.line(c, shade(pair)); c.stroke(); }
    run.circles.forEach(([k, i, j], number) => {
      const [x, y, z] = run.point(k), flat = (a, b) => [a[0] - b[0], a[1] - b[1], 0], radius = run.radii[number];
      const disc = run.circles[number].length === 3, [u, v] = disc ? [i, j].map(rim => flat(run.point(rim), [x, y])) : [[radius, 0, 0], [0, radius, 0]];
      this.line(c, this.ring([x, y, level], u, v), true);
      c.fill();
      if (disc) c.stroke();
    });
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
    for (const k of this.run.helpers) distance[k] = Infinity;
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
    const top = element(card, "header");
    element(top, "h2", {}, heading(panel));
    const chips = element(top, "ul", { className: "chips" });
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
    this.div.setAttribute("aria-label", `${heading(panel)} over time: ${this.curves.map(curve => curve.label).join(", ")}`);
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
const panels = new Set(runs.flatMap(run => run.curves.map(curve => curve.panel)));
graphs.push(...[...panels].map(panel => new Graph(panel, $("graphs"))).filter(graph => graph.curves.length));
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
