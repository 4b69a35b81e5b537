import type { Box } from './place-boxes.js'

const round = (value: number) => Math.round(value)

/** Returns the point where a line from the centre of a box to another point crosses the edge of the box. */
function leave({ x, y, width, height }: Box, towards: { x: number; y: number }): { x: number; y: number } {
  const [dx, dy] = [towards.x - x, towards.y - y]
  if (dx === 0 && dy === 0) return { x, y }
  const scale = Math.min(width / 2 / Math.abs(dx || 1e-9), height / 2 / Math.abs(dy || 1e-9))
  return { x: x + dx * scale, y: y + dy * scale }
}

/**
 * Returns a curve between the edges of two boxes, as the `d` attribute of an SVG path. The curve bends to one side, so
 * that it does not cover the curve in the opposite direction. `lane` keeps several curves in the same direction apart.
 */
export function curveBetween(from: Box, to: Box, lane = 0): string {
  const [dx, dy] = [to.x - from.x, to.y - from.y]
  const length = Math.hypot(dx, dy) || 1
  const bend = Math.min(0.14 * length, 60) + 12 * lane
  const middle = { x: (from.x + to.x) / 2 + (dy / length) * bend, y: (from.y + to.y) / 2 - (dx / length) * bend }
  const [start, end] = [leave(from, middle), leave(to, middle)]
  return `M${round(start.x)} ${round(start.y)}Q${round(middle.x)} ${round(middle.y)} ${round(end.x)} ${round(end.y)}`
}

/**
 * Returns a curve between two boxes that are in different columns. It leaves the point `from` to the right and reaches
 * the point `to` from the left.
 */
export function curveAcross(from: { x: number; y: number }, to: { x: number; y: number }): string {
  const middle = round((from.x + to.x) / 2)
  return `M${round(from.x)} ${round(from.y)}C${middle} ${round(from.y)} ${middle} ${round(to.y)} ${round(to.x)} ${round(to.y)}`
}

/**
 * Creates a function that computes the thickness of a line, in pixels, from its number of connections. `busiest` is the
 * highest number of connections, and `most` the thickness of its line. The scale is logarithmic and steep, because the
 * numbers differ by factors of thousands, but only a few lines should be thick.
 */
export function thicknessScale(busiest: number, most = 6): (connections: number) => number {
  const whole = Math.log10(1 + busiest) || 1
  return (connections) => Math.round((0.5 + (most - 0.5) * (Math.log10(1 + connections) / whole) ** 4) * 10) / 10
}
