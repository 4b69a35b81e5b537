import { createHash } from 'node:crypto'
import { PICTURE_STYLE } from '../../../pictures/style.js'

/** The style sheet of all pages. The content policy contains its hash, so the text must be used unchanged. */
const STYLE = `
:root {
  color-scheme: light dark;
  --page: #f4f6f8; --card: #ffffff; --text: #17212b; --soft: #52606d; --line: #d3dae1; --field: #ffffff; --edge: #7b8794;
  --brand: #0b5c7a; --brand-strong: #084a63; --on-brand: #ffffff; --focus: #0b6bcb;
  --good: #0f6b3c; --good-back: #e6f4ec; --warning: #7a4b00; --warning-back: #fdf3e0; --bad: #a61b1b; --bad-back: #fdecec;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1519; --card: #182127; --text: #e6edf2; --soft: #a3b2be; --line: #2f3d47; --field: #10171c; --edge: #748694;
    --brand: #5cc0e4; --brand-strong: #8ad5f0; --on-brand: #06222e; --focus: #7cc4ff;
    --good: #7ddba4; --good-back: #12291d; --warning: #f2c46d; --warning-back: #2c220f; --bad: #ff9a94; --bad-back: #331615;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--text);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
a { color: var(--brand); }
h1, h2 { line-height: 1.25; margin: 0; text-wrap: balance; }
h1 { font-size: 1.625rem; letter-spacing: -0.01em; }
h2 { font-size: 1.1875rem; }
p { margin: 0.5rem 0 0; }
code { font: 0.9375em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.skip { position: absolute; left: 1rem; top: -4rem; padding: 0.5rem 1rem; background: var(--card); border-radius: 0.5rem; }
.skip:focus { top: 0.5rem; z-index: 1; }
.top { background: var(--card); border-bottom: 1px solid var(--line); }
.bar { max-width: 46rem; margin: 0 auto; padding: 0.75rem 1rem; display: flex; align-items: center; gap: 0.75rem; }
.bar svg { flex: none; width: 1.75rem; height: 1.75rem; color: var(--brand); }
.bar b { flex: 1; font-weight: 650; }
main { max-width: 46rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; display: grid; gap: 1.25rem; }
main:focus { outline: none; }
.lead { color: var(--soft); max-width: 38rem; }
.who { margin-top: 0.75rem; overflow-wrap: anywhere; }
.who .badge { white-space: nowrap; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 0.75rem; padding: 1.25rem; min-width: 0; }
.head { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem 0.75rem; }
.badge { font-size: 0.8125rem; font-weight: 600; border-radius: 1rem; padding: 0.125rem 0.625rem; border: 1px solid currentColor; }
.badge.good { color: var(--good); background: var(--good-back); }
.badge.plain { color: var(--soft); }
.badge.bad { color: var(--bad); background: var(--bad-back); }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) minmax(0, 1fr); gap: 0.375rem 1.25rem; margin: 0.875rem 0 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.notice { border: 1px solid currentColor; border-left-width: 0.375rem; border-radius: 0.5rem; padding: 0.875rem 1rem; }
.notice > * { color: var(--text); }
.notice h2 { font-size: 1.0625rem; }
.notice ul { margin: 0.5rem 0 0; padding-left: 1.25rem; }
.notice a { color: inherit; }
.good.notice { color: var(--good); background: var(--good-back); }
.warning.notice { color: var(--warning); background: var(--warning-back); }
.bad.notice { color: var(--bad); background: var(--bad-back); }
.fields { display: grid; gap: 1.125rem 1rem; margin-top: 0.875rem; }
.field { min-width: 0; display: flex; flex-direction: column; }
.field > :is(input, select) { margin-top: auto; }
.field > .hint { padding-bottom: 0.375rem; }
label, legend { font-weight: 600; display: block; }
.hint { color: var(--soft); font-size: 0.9375rem; margin: 0.125rem 0 0; }
h2 + .hint, summary + .hint { margin-top: 0.375rem; }
fieldset { border: 0; margin: 1.5rem 0 0; padding: 0; min-width: 0; }
legend { font-size: 1.0625rem; padding: 0 0 0.375rem; border-bottom: 1px solid var(--line); width: 100%; }
.error { color: var(--bad); font-weight: 600; margin: 0 0 0.375rem; }
.error::before { content: "\\26A0\\FE0E\\00A0"; }
input, select {
  width: 100%; padding: 0.625rem 0.75rem; height: 3rem; font: inherit; color: inherit;
  background: var(--field); border: 1px solid var(--edge); border-radius: 0.5rem;
}
.tick { display: grid; grid-template-columns: 1.5rem minmax(0, 1fr); column-gap: 0.75rem; align-items: center; }
.tick > .error, .tick > .hint { grid-column: 2; padding: 0; }
.tick > input { width: 1.5rem; height: 1.5rem; margin: 0; grid-column: 1; accent-color: var(--brand); }
select { padding-left: 0.5rem; }
[aria-invalid="true"] { border-color: var(--bad); border-width: 2px; }
.field.invalid { border-left: 0.25rem solid var(--bad); padding-left: 0.75rem; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
.notice:focus-visible { outline: 2px solid currentColor; outline-offset: 0; }
.buttons { display: flex; flex-wrap: wrap; gap: 0.75rem; margin-top: 1.25rem; align-items: start; }
button, .button {
  font: inherit; font-weight: 600; min-height: 2.75rem; padding: 0.5rem 1.125rem; border-radius: 0.5rem; cursor: pointer;
  border: 1px solid var(--edge); background: transparent; color: var(--text); text-decoration: none; display: inline-block;
}
button:hover, .button:hover, summary:hover { border-color: var(--brand); color: var(--brand); }
.primary { background: var(--brand); border-color: var(--brand); color: var(--on-brand); }
.primary:hover { background: var(--brand-strong); border-color: var(--brand-strong); color: var(--on-brand); }
.danger { background: transparent; border-color: var(--bad); color: var(--bad); }
.danger:hover { background: var(--bad); border-color: var(--bad); color: var(--card); }
.quiet { min-height: 2.25rem; padding: 0.25rem 0.875rem; font-size: 0.9375rem; }
summary {
  font-weight: 600; cursor: pointer; padding: 0.5375rem 1.125rem; border: 1px solid var(--edge); border-radius: 0.5rem; min-height: 2.75rem;
  width: max-content; max-width: 100%;
}
details[open] > summary { margin-bottom: 0.75rem; }
.card > details > summary { border: 0; padding: 0.375rem 0; min-height: 0; font-size: 1.1875rem; line-height: 1.25; }
.card > details[open] > summary { margin-bottom: 0; }
.foot { color: var(--soft); font-size: 0.875rem; }
.wide .bar, .wide main { max-width: 60rem; }
.wide .lead { max-width: 48rem; overflow-wrap: anywhere; }
h1 .badge, h4 .badge, h5 .badge { vertical-align: middle; letter-spacing: 0; white-space: nowrap; }
.badge.warning { color: var(--warning); background: var(--warning-back); }
.plain.notice { color: var(--soft); }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
h3, h4, h5 { line-height: 1.3; margin: 0; }
h3 { font-size: 1.0625rem; margin-top: 1.75rem; }
.notice h3 { margin-top: 0; }
h4, h5 { font-size: 1rem; font-weight: 600; overflow-wrap: anywhere; }
.count { color: var(--soft); font-weight: 400; }
.jump { margin-top: 0.75rem; }
.href { color: var(--soft); font-size: 0.8125rem; }
.wide bdi { white-space: pre-wrap; overflow-wrap: anywhere; }
.kind { color: var(--soft); }
.card .notice { margin-top: 1rem; }
.card ul { margin: 0.5rem 0 0; padding-left: 1.25rem; }
.card li { overflow-wrap: anywhere; }
.object { border: 1px solid var(--line); border-left: 0.375rem solid var(--edge); border-radius: 0.5rem; margin-top: 0.75rem; padding: 0.75rem 1rem; }
.object.bad { border-left-color: var(--bad); }
.object.warning { border-left-color: var(--warning); }
.object.good { border-left-color: var(--good); }
.object > summary { border: 0; padding: 0.125rem 0; min-height: 1.5rem; width: auto; border-radius: 0.25rem; }
.object > summary h4 { display: inline; }
.object[open] > summary { margin-bottom: 0.25rem; }
.object .hint { font-size: 0.875rem; overflow-wrap: anywhere; }
.deed { font-weight: 400; }
.deed .delete { color: var(--bad); }
.card .parts { list-style: none; padding: 0; }
.parts > li { border-top: 1px solid var(--line); padding: 0.75rem 0 0.25rem; margin-top: 0.75rem; }
.look { font-weight: 600; }
.evidence { margin-top: 0.375rem; }
.changes { display: block; margin: 0.5rem 0 0; }
.changes > div { padding: 0.375rem 0; }
.changes > div + div { border-top: 1px dashed var(--line); }
.changes dt { font: 0.875rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.changes dd { position: relative; padding: 0.125rem 0.5rem 0.125rem 1.75rem; border-radius: 0.25rem; margin-top: 0.125rem; }
.changes dd .sign { position: absolute; left: 0.5rem; font-weight: 700; }
.goes { background: var(--bad-back); }
.goes .sign { color: var(--bad); }
.comes { background: var(--good-back); }
.comes .sign { color: var(--good); }
.changes .stays { white-space: normal; }
.stays summary { border: 0; padding: 0.125rem 0; min-height: 1.5rem; font-weight: 400; font-size: 0.9375rem; color: var(--soft); }
.facts dd ul { margin: 0; }
textarea {
  width: 100%; padding: 0.625rem 0.75rem; min-height: 5rem; font: inherit; color: inherit; resize: vertical;
  background: var(--field); border: 1px solid var(--edge); border-radius: 0.5rem;
}
.card > form > .field { margin-top: 1rem; }
.card .rows { list-style: none; padding: 0; }
.rows > li { padding: 0.875rem 0; border-top: 1px solid var(--line); }
.rows > li:first-child { border-top: 0; }
.rows a { font-weight: 600; display: inline-block; padding: 0.125rem 0; }
.rows p { margin-top: 0.25rem; }
.rows .badge { white-space: nowrap; }
.revoke > summary { font-size: 0.9375rem; min-height: 2.25rem; padding: 0.25rem 0.875rem; margin-top: 0.5rem; }
.revoke[open] > summary { margin-bottom: 0; }
.revoke button { margin-top: 0.5rem; }
${PICTURE_STYLE}
.drawing div > .pic { display: block; width: 100%; height: auto; margin-top: 0.75rem; }
.card .legend { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; list-style: none; padding: 0; color: var(--soft); font-size: 0.875rem; }
.legend .pic { vertical-align: middle; }
@media (max-width: 48rem) { .drawing { display: none; } }
@media (min-width: 34rem) {
  .card { padding: 1.5rem; }
  .fields { grid-template-columns: repeat(10, minmax(0, 1fr)); }
  .field { grid-column: 1 / -1; }
  .fields:not(:has(> .invalid)) > .large { grid-column: span 4; }
  .fields:not(:has(> .invalid)) > .small { grid-column: span 3; }
}
@media (max-width: 25rem) {
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
  dd { margin-bottom: 0.5rem; }
  .buttons > * { flex: 1 1 100%; }
  .buttons summary { width: 100%; }
  .buttons button, .buttons .button, .buttons summary { text-align: center; }
}
`

/** The element that contains the style sheet. The style sheet is part of each page, because pages may load nothing. */
export const STYLE_ELEMENT = `<style>${STYLE}</style>`

/**
 * The Content-Security-Policy of the pages: nothing runs, nothing is loaded, and forms are sent only to this server.
 * The style sheet is part of each page and is permitted by its hash. The icon is part of each page, too.
 */
export const CONTENT_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')
