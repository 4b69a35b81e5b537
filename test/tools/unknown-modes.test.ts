/** Allowed rows at ends whose enforcement mode the PCE does not tell: whether a rule allows them is not known. */
import t, { type Test } from 'tap'
import type { Json } from './harness.js'
import { startListed } from './listed-pce.js'

const LABELS = [
  { href: '/orgs/1/labels/1', key: 'app', value: 'cart' },
  { href: '/orgs/1/labels/2', key: 'env', value: 'prod' },
  { href: '/orgs/1/labels/3', key: 'app', value: 'shop' },
]
const [CART, PROD, SHOP] = LABELS
const host = (name: string, app: Json, mode: string | null | undefined): Json => ({
  href: `/orgs/1/workloads/${name}`,
  name,
  hostname: name,
  managed: true,
  labels: [app, PROD],
  ...(mode !== undefined && { enforcement_mode: mode }),
})
const SETS = '/orgs/1/sec_policy/draft/rule_sets'
const RULE: Json = {
  href: `${SETS}/1/sec_rules/1`,
  enabled: true,
  providers: [{ label: CART }],
  consumers: [{ label: SHOP }],
  ingress_services: [{ port: 8080, proto: 6 }],
  unscoped_consumers: true,
}
type Mode = string | null | undefined

/** What the tools say about one allowed row from shop to cart. */
async function ask(test: Test, source: Mode, destination: Mode, port = 443) {
  const [shop, cart] = [host('shop-1', SHOP, source), host('cart-1', CART, destination)]
  const row: Json = {
    src: { ip: '10.1.0.2', workload: shop },
    dst: { ip: '10.1.0.1', workload: cart },
    service: { port, proto: 6 },
    num_connections: 5,
    policy_decision: 'allowed',
    flow_direction: 'inbound',
    timestamp_range: { first_detected: '2026-06-14T00:00:00Z', last_detected: '2026-06-14T01:00:00Z' },
  }
  const lists = {
    labels: LABELS,
    workloads: [cart, shop],
    'sec_policy/rule_sets': [{ href: `${SETS}/1`, name: 's', enabled: true, scopes: [[]], rules: [RULE] }],
  }
  const bench = await startListed(test, { lists, rows: [row] })
  const app = { app_name: 'cart', env_name: 'prod' }
  const coverage = await bench.ok('get-policy-coverage-report', app)
  const readiness = await bench.ok('enforcement-readiness', app)
  const compliance = JSON.stringify(await bench.ok('compliance-check', { ...app, framework: 'pci-dss' }))
  const told = /\d+ allowed row[^.]*\. Of these, [^.]*\./.exec(coverage.recommendation)?.[0]
  test.equal(
    /\d+ allowed row[^.]*\. Of these, [^.]*\./.exec(readiness.recommendations.join(' ')) !== null,
    told !== undefined,
  )
  test.equal(
    /1 of them undecided because of an unknown enforcement mode/.test(compliance),
    told !== undefined,
    'compliance',
  )
  return [coverage.allowed_by_default_possible, readiness.readiness_level !== 'ready', told]
}

const UNKNOWN = [
  true,
  true,
  '1 allowed row at workloads in selective mode, or in one that is not known (1): allowed may only mean that no deny rule matched. Of these, 1 undecided because of an unknown enforcement mode.',
]

t.test('at either end, in every form of a mode that is not told', async (t) => {
  for (const mode of [null, undefined, 'of_a_later_release']) {
    t.same(await ask(t, 'idle', mode), UNKNOWN, `the destination: ${mode}`)
    t.same(await ask(t, mode, 'idle'), UNKNOWN, `the source: ${mode}`)
    t.same(await ask(t, mode, mode), UNKNOWN, `both: ${mode}`)
  }
  t.same(await ask(t, null, 'selective'), UNKNOWN, 'beside one in selective mode')
})

t.test('but not where a rule allows the row, whatever the mode', async (t) => {
  t.equal((await ask(t, 'idle', null, 8080))[0], false, 'the rule of the destination')
  t.equal((await ask(t, null, 'full'))[0], false, 'the other end lets in only what a rule allows')
})
