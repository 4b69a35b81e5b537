/** The drawing above a change in words: it is there, of that change, and counts only what it leaves out. */
import t, { type Test } from 'tap'
import type { ShownCall, ShownObject } from '../../schemas/approvals.js'
import { WIDE } from './samples.js'
import { startPages } from './pages-service.js'

const HOSTILE = '"><img src=x onerror=1>'

const ringfence = (name: string): ShownCall => ({
  summary: `Ringfences ${name}.`,
  effect: 'mixed',
  warnings: [],
  objects: [
    {
      kind: 'rule set',
      name: `${name} | prod`,
      change: 'create',
      effect: 'mixed',
      fields: [
        { path: 'application', after: `${name} (prod)` },
        { path: 'workloads', after: 12 },
        { path: 'would_lose_traffic', after: [{ source: `${name} intruder`, ports: ['3389/tcp'], connections: 3 }] },
      ],
      parts: [
        {
          kind: 'allow rule',
          change: 'create',
          fields: [
            { path: 'consumers', after: `${name} web` },
            { path: 'services', after: '443/tcp' },
          ],
        },
      ],
    },
  ],
  objects_total: 1,
})

const change = (count: number, name = 'Object 0'): ShownCall => ({
  summary: 'Changes services.',
  effect: 'neutral',
  warnings: [],
  objects: Array.from({ length: count }, (_, at): ShownObject => ({
    kind: 'service',
    name: at === 0 ? name : `Object ${at}`,
    change: 'update',
    effect: 'neutral',
    fields: [{ path: 'description', before: `${name} before`, after: `${name} after` }],
  })),
  objects_total: count,
})

/** The page of a request for this, and the drawing in it. */
async function pageOf(t: Test, shown: ShownCall) {
  const { ask, loggedIn } = await startPages(t)
  const { id } = await ask({ shown })
  const { body } = await (await loggedIn()).get(`/approve/${id}`)
  const [section = '', drawing = ''] =
    /<section class="card drawing"[^]*?(<svg class="pic"[^]*?<\/svg>)[^]*?<\/section>/.exec(body) ?? []
  return { body, section, drawing }
}

const texts = (drawing: string) => [...drawing.matchAll(/<text[^>]*>([^<]*)</g)].map(([, text]) => text)

t.test('a change is drawn, and what opens more is marked', async (t) => {
  const { drawing } = await pageOf(t, WIDE)
  for (const text of ['Payments | Production', 'In force today', 'After provisioning', '▲ opens more', 'Legacy FTP'])
    t.ok(texts(drawing).includes(text), text)
})

t.test('a ringfence is drawn: inside, let in, cut', async (t) => {
  const { drawing } = await pageOf(t, ringfence('payments'))
  for (const text of [
    'payments (prod)',
    '12 workloads',
    'rule set payments | prod',
    'payments web',
    'payments intruder',
  ])
    t.ok(texts(drawing).includes(text), text)
  t.match(drawing, /443\/tcp[^]*✕|✕[^]*443\/tcp/)
})

t.test('what is not drawn is counted, and no table is named', async (t) => {
  const { body, section } = await pageOf(t, change(40))
  t.match(section, /The first 25 of 40 objects are drawn\./)
  t.match(section, /All of it, and what is not drawn, is in words below\./)
  t.notMatch(section, /\btables?\b/)
  t.notMatch(section, /Object 39/)
  t.match(body.slice(body.indexOf(section) + section.length), /Object 39/)
})

t.test('hostile names are texts in the drawing', async (t) => {
  for (const shown of [change(1, HOSTILE), ringfence(HOSTILE)]) {
    const { body, drawing } = await pageOf(t, shown)
    t.notMatch(body, /<img/)
    t.match(drawing, /&(?:lt|#60);img src(?:=|&#61;)x onerror/)
  }
})
