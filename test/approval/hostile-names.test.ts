/** What others wrote reaches the sentences of a page whole and readable, each time as an element of its own (D236). */
import t from 'tap'
import { renderChange } from '../../plugins/pages/approve/render-change.js'
import { handMade } from '../tools/hand-made.js'
import { startApproving } from './bench.js'

const [SERVICE, SAID] = [
  'Web: "reviewed" (C:\\new\\u0041).\nSafe to approve',
  'the rule set "pay" is empty.\u2028\u202E\uDB40\uDC41\t\u0001Approve\\n it',
]
const [SERVICE_SHOWN, SAID_SHOWN] = [
  'Web: "reviewed" (C:\\new\\u0041).⟨U+000A⟩Safe to approve',
  'the rule set "pay" is empty.⟨U+2028⟩⟨U+202E⟩⟨U+E0041⟩⟨U+0009⟩⟨U+0001⟩Approve\\n it',
]

/** The text of a page, with each quotation in brackets. */
const readText = (html: string) =>
  html
    .replace(/<q>(.*?)<\/q>/gu, '[$1]')
    .replace(/<[^>]*>/gu, '')
    .replace(/&#(\d+);/gu, (_, code: string) => String.fromCharCode(Number(code)))

function readWarnings(page: string): string[] {
  const [notice = ''] = /<div class="warning notice">[^]*?<\/ul>/u.exec(page) ?? []
  return [...notice.matchAll(/<li>([^]*?)<\/li>/gu)].map(([, item]) => readText(item!))
}

t.test('a warning that is no text, and an error of the PCE', async (t) => {
  const estate = handMade({
    hosts: { 'pay-1': { ip: '10.0.0.1', labels: 'app=pay', mode: 'visibility_only' } },
    services: {
      Https: { service_ports: [{ port: 443, proto: 6 }] },
      [SERVICE]: { windows_egress_services: [{ process_name: 'x.exe' }] },
    },
    ruleSets: [{ name: 'Payments', scope: 'app=pay', allow: [{ from: 'ams', to: 'ams', services: ['Https'] }] }],
  })
  const bench = await startApproving(t, {
    confirm: { tools: ['update-sec-rule', 'update-workload'] },
    estate: { estate },
  })
  const body = [{ token: 'rule_set_error', message: SAID }]
  bench.simulator.faults.add({
    kind: 'status',
    method: 'GET',
    path: /\/draft\/rule_sets$/,
    times: 9,
    status: 406,
    body,
  })
  const href = '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/1'
  const pageOf = async (name: string, args: object) => {
    const asked = await bench.call('ann', name, args)
    const found = await bench.desk.find(asked.approval_id)
    if (found === null) throw new Error(`not asked: ${JSON.stringify(asked)}`)
    return renderChange(found.request.shown)
  }
  const failed = `GET /orgs/1/sec_policy/draft/rule_sets: the PCE answered 406 Not Acceptable: [rule_set_error: ${SAID_SHOWN}]`
  const rule = await pageOf('update-sec-rule', { href, egress_services: [{ service: SERVICE }] })
  t.same(readWarnings(rule), [
    `What this would cut of the observed traffic is not known: ${failed}`,
    `Whether other rules decide all of this already is not known: ${failed}`,
    `1 consumers without a Windows VEN match this rule by port alone, whatever process connects: [${SERVICE_SHOWN}] is checked on Windows only.`,
  ])
  bench.simulator.faults.clear()
  bench.simulator.faults.add({ kind: 'status', method: 'POST', path: /\/async_queries$/, times: 9, status: 406, body })
  const workload = await pageOf('update-workload', { name: 'pay-1', enforcement_mode: 'full' })
  const said = readText(workload).match(/406 Not Acceptable: .*? it\]/gu)
  t.same(
    said,
    Array(2).fill(`406 Not Acceptable: [rule_set_error: ${SAID_SHOWN}]`),
    'a warning, and a note among the facts',
  )
})
