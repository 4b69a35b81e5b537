/**
 * The guardrails over the tools of objects-plus and vens-plus: each with a call that touches nothing protected, calls that
 * do, and what a freeze and a limit of one workload make of it.
 */
import t, { type Test } from 'tap'
import { createPceClient, type PceClient } from '../../pce-client/index.js'
import type { GuardrailsConfig } from '../../schemas/guardrails.js'
import { PROTECTED, startGuarded, windows } from './guarded-service.js'

const PORTS = { service_ports: [{ port: 443, proto: 'tcp' }] }
const label = 'protected_label'
const FREEZE: GuardrailsConfig = { freezes: windows('Fri 18:00 - Mon 06:00 UTC') }
const SATURDAY = Date.parse('2026-11-28T12:00:00Z')

interface Row {
  tool: string
  /** A call about nothing protected. */
  free: (release: string) => object
  /** Calls about something protected, each with the condition that is not met. */
  touching: [args: (release: string) => object, rule: string][]
  /** True if the call takes effect at once, so that a freeze refuses it. */
  isAtOnce: boolean
  /** A call that affects two workloads; absent if it affects none. */
  two?: (release: string) => object
}

const onVens = (tool: string, more: (release: string) => object, isAtOnce = true): Row => ({
  tool,
  free: (release) => ({ workloads: ['web1'], ...more(release) }),
  touching: [
    [(release) => ({ workloads: ['dc1'], ...more(release) }), label],
    [(release) => ({ workloads: ['web1', 'dc1'], ...more(release) }), label],
  ],
  isAtOnce,
  ...(isAtOnce && { two: (release) => ({ workloads: ['web1', 'web2'], ...more(release) }) }),
})
const fixed = (args: object) => () => args
const row = (tool: string, free: object, touching: object[], more: Partial<Row> = {}): Row => ({
  tool,
  free: fixed(free),
  touching: touching.map((args) => [fixed(args), label]),
  isAtOnce: false,
  ...more,
})

/** In an order in which each call finds what it is about. */
const TABLE: Row[] = [
  row('create-label-group', { name: 'new', labels: ['role=web'] }, [{ name: 'their', labels: ['role=dc'] }]),
  row('update-label-group', { name: 'webs', add: ['role=db'] }, [
    { name: 'webs', add: ['role=dc'] },
    { name: 'guards', description: 'x' },
  ]),
  row('delete-label-group', { name: 'spare' }, [{ name: 'guards' }]),
  row('create-virtual-service', { name: 'new', labels: ['role=web'], ...PORTS }, [
    { name: 'their', labels: ['role=dc'], ...PORTS },
  ]),
  row('update-virtual-service', { name: 'web', description: 'x' }, [
    { name: 'dc', description: 'x' },
    { name: 'web', labels: ['role=dc'] },
  ]),
  row('delete-virtual-service', { name: 'spare' }, [{ name: 'dc' }]),
  row(
    'bind-workloads',
    { virtual_service: 'web', workloads: ['web1'] },
    [
      { virtual_service: 'web', workloads: ['dc1', 'web1'] },
      { virtual_service: 'dc', workloads: ['web1'] },
    ],
    { isAtOnce: true, two: fixed({ virtual_service: 'web', workloads: ['web1', 'web2'] }) },
  ),
  row('create-pairing-profile', { name: 'new', labels: ['role=web'] }, [{ name: 'their', labels: ['role=dc'] }]),
  row('update-pairing-profile', { name: 'web', key_lifespan: 60 }, [
    { name: 'dc', key_lifespan: 60 },
    { name: 'web', labels: ['role=dc'] },
  ]),
  row('create-pairing-key', { name: 'web' }, [{ name: 'dc' }]),
  row('delete-pairing-keys', { name: 'web' }, [{ name: 'dc' }]),
  row('delete-pairing-profile', { name: 'web' }, [{ name: 'dc' }]),
  row('create-label-dimension', { key: 'bu', display_name: 'Unit' }, []),
  row('update-label-dimension', { key: 'bu', display_name: 'Units' }, []),
  row('delete-label-dimension', { key: 'bu' }, []),
  onVens('request-ven-support-reports', () => ({}), false),
  onVens('upgrade-vens', (release) => ({ release })),
  onVens('set-ven-status', () => ({ status: 'suspended' })),
  onVens('unpair-vens', () => ({ firewall_restore: 'saved' })),
]

/** A guarded service with an object of each kind that is protected, and with two that are not. */
async function start(t: Test, guardrails: GuardrailsConfig) {
  const service = await startGuarded(t, guardrails, { now: () => SATURDAY })
  const { pce } = service
  const direct = createPceClient({ url: 'http://127.0.0.1', port: pce.port })
  t.teardown(() => direct.close())
  direct.setCredentials(pce.simulator.credentials.key, pce.simulator.credentials.secret)
  await prepare(direct)
  const [{ release = '' } = {}] = (await direct.get('/software/ven/releases')).json<{ release: string }[]>()
  return { ...service, release }
}

async function prepare(pce: PceClient): Promise<void> {
  const labels = await pce.labels.getAll()
  const of = (value: string) => [{ href: labels.find((one) => one.value === value)!.href }]
  const hrefs: string[] = []
  for (const [name, role] of [
    ['webs', 'web'],
    ['spare', 'web'],
    ['guards', 'dc'],
  ] as const)
    hrefs.push((await pce.labelGroups.create({ name, key: 'role', labels: of(role) })).href)
  for (const [name, role] of [
    ['web', 'web'],
    ['spare', 'web'],
    ['dc', 'dc'],
  ] as const) {
    const ports = { service_ports: [{ port: 443, proto: 6 }] }
    hrefs.push((await pce.virtualServices.create({ name, labels: of(role), apply_to: 'host_only', ...ports })).href)
  }
  for (const role of ['web', 'dc'])
    await pce.pairingProfiles.create({ name: role, enabled: true, key_lifespan: 3600, labels: of(role) })
  await pce.provisionPolicyChanges('Prepared', hrefs)
}

t.test('protected labels', async (t) => {
  const { ask, release } = await start(t, PROTECTED)
  for (const { tool, free, touching } of TABLE) {
    for (const [args, rule] of touching) {
      const asked = args(release)
      t.same(await ask(tool, asked), ['protected', rule, 0], `${tool} ${JSON.stringify(asked)}`)
    }
    t.equal((await ask(tool, free(release)))[0], 'ok', tool)
  }
})

t.test('a freeze', async (t) => {
  const { ask, release } = await start(t, FREEZE)
  for (const { tool, free, isAtOnce } of TABLE) {
    const [said, , writes] = await ask(tool, free(release))
    t.same([said, writes === 0], isAtOnce ? ['frozen', true] : ['ok', false], tool)
  }
})

t.test('a limit of one workload', async (t) => {
  const { ask, release } = await start(t, { maxWorkloads: 1 })
  for (const { tool, free, two } of TABLE) {
    if (two !== undefined) t.same(await ask(tool, two(release)), ['too_many_workloads', undefined, 0], tool)
    t.equal((await ask(tool, free(release)))[0], 'ok', tool)
  }
})
