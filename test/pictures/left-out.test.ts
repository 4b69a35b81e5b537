/** What a drawing leaves out is counted in it, and said where it is only where it is. */
import t from 'tap'
import { drawPicture } from '../../pictures/draw-picture.js'
import { renderHtmlFile } from '../../pictures/page/render-html.js'
import { renderSvgFile } from '../../pictures/page/render-svg.js'
import { changeAnswer, ringfenceAnswer } from './samples.js'

const PARTS = { script: '', hash: () => 'sha256-x', foot: '' }
const IN_TABLES = 'What the drawing leaves out is in these tables.'

t.test('a large change: counted in the drawing, a table only in the page', (t) => {
  const picture = drawPicture('change', [changeAnswer({ objects: 40, rules: 15, fields: 10, risks: 5 })])
  const [svg, html] = [renderSvgFile(picture), renderHtmlFile(picture, PARTS)]
  for (const words of [
    'The first 25 of 40 objects are drawn.',
    '3 more rules: not drawn',
    '2 more fields: not drawn',
    '2 more remarks: not drawn',
  ]) {
    t.ok(svg.includes(words), words)
    t.ok(html.includes(words), words)
  }
  t.notMatch(svg, /tables?\b/, 'a drawing alone has none')
  t.equal(html.split(IN_TABLES).length, 2)
  for (const name of ['Object 39', 'field_9', 'web → rule 14']) {
    t.notOk(svg.includes(`>${name}<`), `${name} is not drawn`)
    t.ok(html.split(IN_TABLES)[1]!.includes(name), `${name} is in the table`)
  }
  t.end()
})

t.test('a large ringfence: the same', (t) => {
  const picture = drawPicture('ringfence', [ringfenceAnswer({ sources: 20, destinations: 20 })])
  const [svg, html] = [renderSvgFile(picture), renderHtmlFile(picture, PARTS)]
  t.match(svg, />7 more<[^]*let in by a new rule: not drawn</)
  t.match(svg, />6 more<[^]*>not drawn</)
  t.notMatch(svg, /tables?\b/)
  for (const name of ['source-19 (prod)', 'destination-19 (prod)'])
    t.ok(html.split(IN_TABLES)[1]!.includes(name), `${name} is in the table`)
  t.end()
})
