/** Ends whose enforcement mode the PCE does not tell: whether a rule allows their traffic, or what they drop, is not known. */
import t, { type Test } from 'tap'
import type { Json } from './harness.js'
import { startListed } from './listed-pce.js'
import { CART, LABELS, POLICY, PROD, SHOP, hostOf } from './shop-and-cart.js'

const FLOW = { source: 'shop-1', destination: 'cart-1', port: 443, proto: 'tcp' }
type Mode = string | null | undefined

/** A PCE that saw one row from shop to cart; `more`: further fields of cart's workload. */
function start(
  test: Test,
  source: Mode,
  destination: Mode,
  port = 443,
  profiles: Json[] = [],
  decision = 'allowed',
  more: Json = {},
) {
  const [shop, cart] = [hostOf('shop-1', SHOP, source), { ...hostOf('cart-1', CART, destination), ...more }]
  const row: Json = {
    src: { ip: '10.1.0.2', workload: shop },
    dst: { ip: '10.1.0.1', workload: cart },
    service: { port, proto: 6 },
    num_connections: 5,
    policy_decision: decision,
    flow_direction: 'inbound',
    timestamp_range: { first_detected: '2026-06-14T00:00:00Z', last_detected: '2026-06-14T01:00:00Z' },
  }
  const lists = {
    labels: LABELS,
    workloads: [cart, shop, hostOf('shop-2', SHOP, null, false)],
    'container_clusters/c/container_workload_profiles': profiles,
    ...POLICY,
  }
  return startListed(test, { lists, rows: [row] })
}

/** What the tools say about the row. */
async function ask(test: Test, source: Mode, destination: Mode, port = 443) {
  const bench = await start(test, source, destination, port)
  const app = { app_name: 'cart', env_name: 'prod' }
  const coverage = await bench.ok('get-policy-coverage-report', app)
  const readiness = await bench.ok('enforcement-readiness', app)
  const compliance = JSON.stringify(await bench.ok('compliance-check', { ...app, framework: 'pci-dss' }))
  const told = /\d+ row may pass only by default[^.]*\./.exec(coverage.recommendation)?.[0]
  test.equal(/\d+ row may pass only by default/.test(readiness.recommendations.join(' ')), told !== undefined)
  test.equal(
    /1 row that no rule allows may be blocked already: undecided because of an unknown enforcement mode/.test(
      compliance,
    ),
    told !== undefined,
    'compliance',
  )
  return [coverage.allowed_by_default_possible, readiness.readiness_level !== 'ready', told]
}

const UNKNOWN = [
  true,
  true,
  '1 row may pass only by default (selective mode, or one that is not known): no rule is known to allow them.',
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

const EFFECTS = ['cut', 'opened', 'possibly_cut', 'possibly_opened', 'stays_allowed', 'stays_blocked']
const NO_CONNECTIONS = Object.fromEntries(EFFECTS.map((effect) => [effect, 0]))

t.test('a change of such a mode cuts only possibly', async (t) => {
  const profile = '/orgs/1/container_clusters/c/container_workload_profiles/p'
  const labels = [CART, PROD].map(({ href, key, value }: Json) => ({ key, assignment: { href, value } }))
  const to = { enforcement_mode: 'full' }
  for (const mode of [null, undefined, 'of_a_later_release']) {
    const told = mode === undefined ? {} : { enforcement_mode: mode }
    const profiles = [{ href: profile, namespace: 'n', managed: true, labels, ...told }]
    const { ok } = await start(t, 'idle', mode, 443, profiles)
    const app = { app_name: 'cart', env_name: 'prod' }
    for (const [tool, args] of [
      ['preview-enforcement-change', app],
      ['set-enforcement-mode', { ...app, dry_run: true }],
    ] as const) {
      const { connections } = await ok(tool, { ...args, ...to })
      t.same(connections, { ...NO_CONNECTIONS, possibly_cut: 5 }, `${tool}: ${mode}`)
    }
    for (const [tool, args] of [
      ['update-workload', { name: 'cart-1' }],
      ['update-container-workload-profile', { profile_href: profile }],
    ] as const) {
      const { effect, warnings } = await ok(tool, { ...args, ...to, dry_run: true })
      t.same(effect.traffic.connections, { cut: 0, possibly_cut: 5, kept: 0, blocked: 0 }, `${tool}: ${mode}`)
      t.same([effect.from, effect.isUntold], [null, undefined])
      t.match(effect.note, /possibly_cut is undecided because of an unknown enforcement mode/)
      t.match(warnings[0], /0 connections would be cut and 5 possibly/)
    }
  }
})

t.test('explain-flow and suggest-rule judge such ends in any mode', async (t) => {
  const UNCERTAIN = {
    verdict: 'uncertain',
    why: 'allowed or potentially_blocked or blocked: an unknown enforcement mode decide.',
  }
  for (const mode of [null, undefined, 'of_a_later_release']) {
    const { ok } = await start(t, mode, mode)
    for (const tool of ['explain-flow', 'suggest-rule'])
      t.same((await ok(tool, FLOW)).active, UNCERTAIN, `${tool}: ${mode}`)
  }
})

t.test('what selective mode enforces is not known where it is set for some services', async (t) => {
  const ask = async (services: Json[]) => {
    const more = { selectively_enforced_services: services }
    const { ok } = await start(t, 'idle', 'selective', 443, [], 'potentially_blocked', more)
    const full = { enforcement_mode: 'full' }
    const { active } = await ok('explain-flow', FLOW)
    const { connections } = await ok('preview-enforcement-change', { workloads: ['cart-1'], ...full })
    const { effect } = await ok('update-workload', { name: 'cart-1', ...full, dry_run: true })
    return [
      active.verdict,
      [connections.cut, connections.possibly_cut],
      [effect.from, effect.traffic.connections.cut, effect.traffic.connections.possibly_cut],
    ]
  }
  t.same(await ask([]), ['allowed', [5, 0], ['selective', 5, 0]])
  t.same(await ask([{ port: 443, proto: 6 }]), ['uncertain', [0, 5], ['selective', 0, 5]])
})

t.test('pods that are managed from now on in such a mode', async (t) => {
  const href = '/orgs/1/container_clusters/c/container_workload_profiles/p'
  const { ok } = await start(t, 'idle', 'idle', 443, [
    { href, namespace: 'n', managed: false, enforcement_mode: 'of_a_later_release' },
  ])
  const { effect, warnings } = await ok('update-container-workload-profile', {
    profile_href: href,
    managed: true,
    dry_run: true,
  })
  t.equal(effect, undefined)
  t.same(warnings, [
    'The PCE does not tell the mode of the profile, so what would be cut once its pods are managed is not known.',
  ])
})

t.test('a profile whose label has no value labels no pods', async (t) => {
  const href = '/orgs/1/container_clusters/c/container_workload_profiles/p'
  const labels = [{ key: 'app', assignment: null }]
  const profiles = [{ href, namespace: 'n', managed: true, enforcement_mode: 'idle', labels }]
  const { ok } = await start(t, 'idle', 'idle', 443, profiles)
  const to = { enforcement_mode: 'full', dry_run: true }
  const { warnings } = await ok('update-container-workload-profile', { profile_href: href, ...to })
  t.match(warnings[0], /The profile assigns no labels/)
})

t.test('what a ringfence would make such workloads drop of their outbound traffic', async (t) => {
  const ask = async (mode: Mode, decision = 'allowed') => {
    const { ok, updates } = await start(t, mode, 'idle', 443, [], decision)
    const { warnings } = await ok('create-ringfence', { app_name: 'shop', env_name: 'prod', dry_run: true })
    const said = warnings.flatMap((one: string) => /no outbound rules.*?\((\d.*?)\)\./.exec(one)?.[1] ?? [])
    return [said, updates().map((path) => /async_queries\/(\d+)\/update_rules/.exec(path)?.[1])]
  }
  const LOST = '5 connections in the window, all of them'
  const WHY = 'lets out anything no rule denies'
  for (const mode of [null, undefined, 'of_a_later_release']) {
    const said = `${LOST} perhaps allowed today only because a mode that is not known ${WHY}`
    t.same(await ask(mode), [[said], ['1']], `${mode}: the rules are read, not asked for`)
    t.same((await ask(mode, 'potentially_blocked'))[0], [said], `${mode}: which end has no rule is not known`)
  }
  t.same(await ask('selective'), [[`${LOST} allowed today only because selective mode ${WHY}`], ['1']])
  t.same(await ask('full'), [['5 connections in the window'], ['1']], 'no rule allows it, whatever the PCE recorded')
  t.same((await ask('visibility_only', 'potentially_blocked'))[0], ['5 connections in the window'], 'no rule allows it')
})
