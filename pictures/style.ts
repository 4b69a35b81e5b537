import type { Decision } from './picture.js'

/**
 * The colours of pictures in light and dark mode. Decisions differ in hue and lightness, and their lines also in
 * dashes, so that people with colour blindness can distinguish them, even on paper. A test verifies this.
 */
export const COLOURS = {
  light: {
    page: '#ffffff',
    panel: '#f3f6f9',
    text: '#17212b',
    soft: '#52606d',
    line: '#b6c2cc',
    allowed: '#0072b2',
    potentially_blocked: '#c97b00',
    blocked: '#8f1d00',
    unknown: '#6b7785',
    mark: '#fff1c2',
  },
  dark: {
    page: '#11181d',
    panel: '#1a242b',
    text: '#e6edf2',
    soft: '#a3b2be',
    line: '#41515c',
    allowed: '#58b4ee',
    potentially_blocked: '#ffd479',
    blocked: '#f4603c',
    unknown: '#93a1ad',
    mark: '#4a3c10',
  },
} as const satisfies Record<
  'light' | 'dark',
  Record<Decision | 'page' | 'panel' | 'text' | 'soft' | 'line' | 'mark', string>
>

const variables = (colours: Readonly<Record<string, string>>) =>
  Object.entries(colours)
    .map(([name, value]) => `--pic-${name.replace('_', '-')}: ${value};`)
    .join(' ')

/** The CSS name of a decision: its name with dashes instead of underscores. */
type Dashed<Word extends string> = Word extends `${infer First}_${infer Rest}` ? `${First}-${Rest}` : Word

/**
 * For each policy decision, the CSS classes that share its colour. Each class marks something about as good or as bad
 * as that decision.
 */
const MEANINGS = {
  allowed: ['allowed', 'narrowing', 'let-in'],
  'potentially-blocked': ['potentially-blocked', 'mixed', 'perhaps-cut'],
  blocked: ['blocked', 'widening', 'cut'],
  unknown: ['unknown', 'undecided', 'neutral'],
} satisfies Record<Dashed<Decision>, readonly string[]>
const meanings = Object.entries(MEANINGS)
  .map(
    ([colour, names]) => `.pic :is(${names.map((name) => `.${name}`).join(', ')}) { --pic-own: var(--pic-${colour}); }`,
  )
  .join('\n')

/**
 * The style of the content of every `<svg class="pic">`, whether in a file, a page or the approval page. Drawings have
 * no style attributes, so that a content security policy can permit exactly this text by its hash.
 */
export const PICTURE_STYLE = `
.pic { ${variables(COLOURS.light)} font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
@media (prefers-color-scheme: dark) { .pic { ${variables(COLOURS.dark)} --pic-calm: 0.75; } }
@media (forced-colors: active) {
  .pic { --pic-page: Canvas; --pic-panel: Canvas; --pic-text: CanvasText; --pic-soft: CanvasText; --pic-line: GrayText; --pic-mark: Canvas; }
}
${meanings}
.pic text { fill: var(--pic-text); unicode-bidi: isolate; }
.pic .soft { fill: var(--pic-soft); }
.pic .small { font-size: 10.5px; }
.pic .strong { font-weight: 650; }
.pic .large { font-size: 16px; font-weight: 650; }
.pic .halo { paint-order: stroke; stroke: var(--pic-page); stroke-width: 3px; stroke-linejoin: round; }
.pic .middle { text-anchor: middle; }
.pic .end { text-anchor: end; }
.pic .own { fill: var(--pic-own); }
.pic .struck { text-decoration: line-through; }
.pic .ground { fill: var(--pic-page); }
.pic .panel { fill: var(--pic-panel); stroke: var(--pic-line); }
.pic .plate { fill: var(--pic-panel); fill-opacity: 0.85; }
.pic .box { fill: var(--pic-page); stroke: var(--pic-soft); }
.pic .fold { fill: var(--pic-panel); stroke: var(--pic-soft); stroke-dasharray: 1 2; stroke-width: 1.5; }
.pic .outside { fill: var(--pic-panel); stroke: var(--pic-line); }
.pic .nameless { stroke-dasharray: 4 3; }
.pic .edge { fill: none; stroke: var(--pic-own); stroke-opacity: 0.85; }
.pic .edge.allowed { stroke-opacity: var(--pic-calm, 0.5); }
.pic .edge.potentially-blocked { stroke-dasharray: 7 4; }
.pic .edge.blocked { stroke-dasharray: 2 3; }
.pic .edge.unknown { stroke-dasharray: 1 5; }
.pic .head { fill: var(--pic-own); stroke: none; }
.pic .bar { fill: var(--pic-own); stroke: none; }
.pic .ring { fill: none; stroke: var(--pic-own, var(--pic-text)); stroke-width: 1.5; }
.pic .marked { fill: var(--pic-mark); }
.pic .rule { stroke: var(--pic-line); fill: none; }
`
