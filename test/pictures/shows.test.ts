/** What each picture is there to show, and that names of others stay texts. */
import t from 'tap'
import { drawPicture } from '../../pictures/draw-picture.js'
import { renderHtmlFile } from '../../pictures/page/render-html.js'
import { renderSvgFile } from '../../pictures/page/render-svg.js'
import { changeAnswer, pathsAnswer, ringfenceAnswer } from './samples.js'

const PARTS = { script: '', hash: () => 'sha256-x', foot: '' }
const HOSTILE = '"><img src=x onerror=1>'

/** The texts of a group that is called this, without the marks around them. */
function nodeOf(svg: string, name: string): { markup: string; texts: string[] } {
  const [, markup = ''] = svg.split(`data-name="${name}"`)
  const [own = ''] = markup.split('<g class="node"')
  return { markup: own, texts: [...own.matchAll(/<text[^>]*>([^<]*)</g)].map(([, text]) => text!) }
}

t.test('a change: what opens more is marked, before and after side by side', (t) => {
  const svg = renderSvgFile(drawPicture('change', [changeAnswer({ objects: 2, rules: 1 })]))
  const [opening, other] = [nodeOf(svg, 'Object 0'), nodeOf(svg, 'Object 1')]
  t.equal(opening.texts.filter((text) => text === '▲ opens more').length, 2, 'the object and its rule')
  t.match(opening.markup, /class="bar widening"/)
  for (const text of ['− Object 0 before', '+ Object 0 after', '+ Object 0', 'web', '~ changed allow rule'])
    t.ok(opening.texts.includes(text), text)
  t.notOk(other.texts.includes('▲ opens more'))
  for (const text of ['= same traffic', '− Object 0 before', '+ Object 0 after']) t.ok(other.texts.includes(text), text)
  const at = (words: string) => Number(new RegExp(`<text x="(\\d+)"[^>]*>${words}<`).exec(svg)?.[1])
  t.equal(at('− Object 0 before'), at('In force today'))
  t.equal(at('\\+ Object 0 after'), at('After provisioning'))
  t.end()
})

t.test('a ringfence: inside, let in, cut, and on which service', (t) => {
  const svg = renderSvgFile(drawPicture('ringfence', [ringfenceAnswer({ sources: 1, destinations: 1 })]))
  const inside = nodeOf(svg, 'payments (prod)')
  for (const text of ['payments (prod)', '12 workloads', 'rule set payments | prod', 'the rest is denied'])
    t.ok(inside.texts.includes(text), text)
  const texts = [...svg.matchAll(/<text[^>]*>([^<]*)</g)].map(([, text]) => text!)
  const after = (name: string) => texts.slice(texts.indexOf(name)).slice(0, 3).join(' ')
  t.match(after('source-0 (prod)'), /8443\/tcp · 10 connections/)
  t.match(after('payments intruder'), /3389\/tcp · unmanaged, 3 connections/)
  t.match(after('destination-0 (prod)'), /8443\/tcp/)
  t.match(svg, /class="edge allowed" marker-end/, 'what is let in arrives')
  t.match(svg, /class="edge blocked">[^]*?class="own strong middle cut"[^>]*>✕</, 'what is cut does not')
  for (const words of ['would be cut', 'let in by a new rule']) t.ok(texts.includes(words), words)
  t.end()
})

t.test('a ringfence that was written: its rules tell who is let in, and the plan is where a note says', (t) => {
  const {
    inbound_remote_apps: _in,
    outbound_remote_apps: _out,
    infrastructure_sources: _of,
    ...written
  } = ringfenceAnswer({ sources: 1 })
  const allow = (app: string) => ({ type: 'extra-scope allow (inbound)', app, env: 'prod', href: `/${app}` })
  const answer = {
    ...written,
    ruleset: { ...written.ruleset, rules: [{ type: 'intra-scope', href: '/inside' }, allow('shop')] },
    skipped_existing_rules: [allow('crm')],
  }
  const svg = renderSvgFile(drawPicture('ringfence', [answer]))
  const texts = [...svg.matchAll(/<text[^>]*>([^<]*)</g)].map(([, text]) => text!)
  for (const text of ['shop (prod)', 'crm (prod)', 'payments intruder', 'let in by a new rule', 'allowed already'])
    t.ok(texts.includes(text), text)
  t.notOk(
    texts.some((text) => text.includes('no service')),
    'of services nothing is known here',
  )
  t.match(svg, /Services and destinations are in the plan, which a dry run shows\./)
  t.end()
})

t.test('paths: a bridge is marked, and nothing else is', (t) => {
  const svg = renderSvgFile(drawPicture('paths', [pathsAnswer()]))
  const bridge = nodeOf(svg, 'jump-hosts (prod)')
  t.ok(bridge.texts.includes('bridge'), bridge.texts.join())
  t.match(bridge.markup, /class="ring"/)
  for (const name of ['payments (prod)', 'ledger (prod)']) {
    const { markup, texts } = nodeOf(svg, name)
    t.ok(texts.includes(name), name)
    t.notMatch(markup.split('</g>')[0], /class="ring"/)
  }
  t.match(svg, /⚠ 22/)
  t.match(svg, /bridge: links parts that would otherwise be separate/)
  t.end()
})

t.test('a hostile label value is a text in a change and in a ringfence', (t) => {
  for (const picture of [
    drawPicture('change', [changeAnswer({ objects: 1, rules: 1, name: HOSTILE })]),
    drawPicture('ringfence', [ringfenceAnswer({ sources: 1, name: HOSTILE })]),
  ])
    for (const text of [renderSvgFile(picture), renderHtmlFile(picture, PARTS)]) {
      t.notMatch(text, /<img/, picture.kind)
      t.match(text, /data-name="[^"<>]*img src[^"<>]*onerror[^"<>]*"/, 'whole, in an attribute')
      t.match(text, />[^<>]*&(?:lt|#60);img src[^<>]*</, 'and in a text')
    }
  t.end()
})
