import { element } from '../markup.js'
import type { PictureKind } from '../picture.js'
import { COLOURS } from '../style.js'
import { PAGE_STYLE } from './page-style.js'

const TITLES: Readonly<Record<PictureKind, string>> = {
  map: 'Application map',
  ringfence: 'Ringfence plan',
  change: 'Policy change',
  paths: 'Lateral movement',
}

export const titleOfApp = (kind: PictureKind): string => TITLES[kind]

const themed = (['light', 'dark'] as const)
  .map((theme) => {
    const colours = Object.entries(COLOURS[theme])
    const own = colours.map(([name, value]) => `--${name}: ${value};`).join(' ')
    const pictures = colours.map(([name, value]) => `--pic-${name.replace('_', '-')}: ${value};`).join(' ')
    return `:root[data-theme="${theme}"] { color-scheme: ${theme}; ${own} }\n:root[data-theme="${theme}"] .pic { ${pictures} }`
  })
  .join('\n')

/** The style of the page. The host chooses the theme, which may differ from the theme of the browser. */
const STYLE = `${PAGE_STYLE}
${themed}
.stage.live { height: 32rem; }
`

/**
 * Returns the static page of an MCP App, which draws an answer when it receives one. `script` is the bundle of
 * `pictures/browser/app.ts`.
 */
export const renderAppPage = (kind: PictureKind, script: string): string =>
  [
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">',
    element('title', {}, TITLES[kind]).text,
    `<style>${STYLE}</style></head><body>`,
    element('main', { id: 'picture', 'data-kind': kind }, element('p', { role: 'status' }, 'Waiting for the answer …'))
      .text,
    `<script>${script}</script></body></html>\n`,
  ].join('')
