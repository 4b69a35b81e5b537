/** A PCE that sends a part of a list of workloads: what can only be said of all of them is not said. */
import t from 'tap'
import type { ScanOptions } from '../../pce-client/index.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { partial } from '../partial.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'
import { startListed } from './listed-pce.js'
import { CART, LABELS, POLICY, SHOP, hostOf } from './shop-and-cart.js'

const HOSTS = {
  a1: { ip: '10.0.0.1', labels: 'app=pay env=prod role=web', mode: 'full' as const },
  b1: { ip: '10.0.0.2', labels: 'app=crm env=prod role=db', mode: 'full' as const },
  z1: { ip: '10.0.0.3', labels: 'app=zzz env=prod loc=far', mode: 'full' as const },
}
/** A bench whose PCE sends the first two workloads of three, from a scan on that may be a later one. */
async function startCut(t: Parameters<typeof startBench>[0], hosts: object = HOSTS, from = 1) {
  const allow = [{ from: 'ams', to: 'ams' }]
  const estate = handMade({ hosts: hosts as typeof HOSTS, ruleSets: [{ name: 'Z', scope: 'app=zzz env=prod', allow }] })
  const bench = await startBench(t, { estate })
  const { workloads } = bench.pce
  const scan = workloads.scan.bind(workloads)
  let scans = 0
  workloads.scan = async (version, parent, options: ScanOptions<Workload>) => {
    scans += 1
    if (scans < from) return scan(version, parent, options)
    let kept = 0
    const read = await scan(version, parent, {
      ...options,
      onBegin() {
        kept = 0
        options.onBegin?.()
      },
      onItems(items) {
        const first = items.slice(0, Math.max(0, 2 - kept))
        kept += first.length
        return options.onItems(first)
      },
    })
    return { ...read, items: kept, isWhole: false }
  }
  return bench
}

t.test('is refused by what answers for all of them', async (t) => {
  const { fails } = await startCut(t)
  const CALLS = [
    ['explain-flow', { source: 'env=prod', destination: 'z1', port: 1, proto: 'tcp', lookback_days: 1 }],
    ['find-redundant-rules', {}],
    ['get-ip-list-matches', { address: '10.0.0.0/24' }],
    ['find-rules', { applies_to: '10.0.0.3' }],
    ['label-workloads', { csv: 'name,role\nz1,web', dry_run: true }],
    ['import-workloads', { rows: [{ name: 'new', ip_addresses: ['10.0.0.3'] }] }],
    ['find-duplicate-workloads', {}],
    ['find-listeners', { name: 'z' }],
    ['get-compatibility-reports', {}],
    ['find-stale-vens', {}],
  ] as const
  for (const [tool, args] of CALLS)
    partial(t, await fails(tool, args, 'pce_error'), { message: /The PCE sent . of .* that is needed whole/ }, tool)
})

t.test('leaves what it does not know of out of what is unused', async (t) => {
  const { ok, pce } = await startCut(t)
  const getPage = pce.labels.getPage.bind(pce.labels)
  pce.labels.getPage = async (...args) => {
    const { items, ...page } = await getPage(...args)
    return {
      ...page,
      items: items.map(({ usage: _usage, ...label }: (typeof items)[number] & { usage?: unknown }) => label),
    }
  }
  const answer = await ok('find-unused', { kinds: ['labels'] })
  t.notMatch(JSON.stringify(answer), /"loc=far"|"far"/, 'a workload that was not sent bears it')
  t.match(JSON.stringify(answer), /The PCE sent 2 of/)
})

t.test('is a warning where suggestions rest on it', async (t) => {
  const { ok } = await startCut(t, HOSTS, 2)
  partial(t, await ok('find-unlabelled-workloads', { missing: ['loc'], suggest_from: ['names'] }), {
    warnings: [/^The PCE did not give the whole list of workloads/],
  })
})

t.test('does not count as a look at what was written', async (t) => {
  const many = Array.from({ length: 60 }, (_, at) => [`h${at}`, { ip: `10.1.0.${at + 1}`, labels: 'app=pay env=prod' }])
  const { ok } = await startCut(t, { ...Object.fromEntries(many), a1: HOSTS.a1 }, 3)
  const answer = await ok('label-workloads', { selection: { labels: 'app=pay' }, max_matches: 100, set: ['role=web'] })
  t.match(JSON.stringify(answer), /The PCE sent 2 of/, 'that it could not be read back is told')
})

/** Lets the PCE of a bench send the first labels alone. */
function cutLabels<B extends Bench>(bench: B): B {
  const { labels } = bench.pce
  const scan = labels.scan.bind(labels)
  labels.scan = async (...args) => ({ ...(await scan(...args)), isWhole: false })
  return bench
}

const MISSING = /The PCE sent \d+ of \d+ objects of a list that is needed whole/

t.test('of labels costs compliance-check what hangs on it alone', async (t) => {
  const CUT = { app_name: 'cart', env_name: 'prod' }
  const ask = async (ends: Json[]) => {
    const row = {
      src: { ip: '10.1.0.2', workload: hostOf('shop-1', SHOP, 'full') },
      dst: { ip: '10.1.0.1', workload: { ...hostOf('cart-1', CART, 'full'), labels: ends } },
      service: { port: 443, proto: 6 },
      num_connections: 1,
      policy_decision: 'allowed',
      flow_direction: 'inbound',
      timestamp_range: { first_detected: '2026-06-14T00:00:00Z', last_detected: '2026-06-14T01:00:00Z' },
    }
    const lists = { labels: LABELS, workloads: [hostOf('cart-1', CART, 'full')], ...POLICY }
    const { ok } = cutLabels(await startListed(t, { lists, rows: [row] }))
    const { findings, workloads_analyzed: workloads, analysed } = await ok('compliance-check', CUT)
    const lost = findings.filter(({ status, detail }: Json) => status === 'NOT_ASSESSED' && MISSING.test(detail))
    return { lost: lost.map(({ name }: Json) => name), of: findings.length, workloads, rows: analysed.rows }
  }
  const own = LABELS.slice(0, 2)
  const answer = { of: 4, workloads: 1, rows: 1 }
  const lost = ['Ringfencing', 'High-risk ports', 'Policy coverage']
  t.same(await ask([...own]), { ...answer, lost }, 'the policy, and traffic that it decides about')
  t.same(await ask(own.map(({ href }) => ({ href }))), { ...answer, lost }, 'also where traffic names no labels')
})

t.test('of labels leaves unknown what another mode would cut', async (t) => {
  const { ok } = cutLabels(await startCut(t, HOSTS, Infinity))
  const args = { app_name: 'pay', env_name: 'prod', enforcement_mode: 'idle' }
  const { connections, warnings } = await ok('preview-enforcement-change', args)
  t.same([connections, warnings.length], [undefined, 1])
  t.match(warnings[0], /^The traffic could not be read, so what would be cut is not known: The PCE sent 7 of 7/)
})
