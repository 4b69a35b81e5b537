/** What a person is shown of a call before they decide: everything, what widens first, and nothing that a PCE's text could hide (D146). */
import { pino } from 'pino'
import t from 'tap'
import { MOST_SHOWN_BYTES, type ShownCall } from '../../schemas/approvals.js'
import { connectPce } from '../../plugins/context/connect-pce.js'
import { createCallTracker } from '../../plugins/dispatcher/run-handler.js'
import type { SharedConfig } from '../../schemas/config.js'
import { partial } from '../partial.js'
import { ALL, type Json, startApproving } from './bench.js'

type Bench = Awaited<ReturnType<typeof startApproving>>

const shownOf = async (bench: Bench, asked: Json): Promise<ShownCall> => {
  const found = await bench.desk.find(asked.approval_id)
  if (found === null) throw new Error(`not asked: ${JSON.stringify(asked)}`)
  return found.request.shown
}

t.test('a provisioning: each object and rule, field by field, what widens first, and what stays pending', async (t) => {
  const bench = await startApproving(t)
  const rs = await bench.draft('web access')
  const deny = await bench.call('ann', 'create-deny-rule', {
    ruleset_href: rs,
    providers: ['ams'],
    consumers: ['iplist:Any (0.0.0.0/0 and ::/0)'],
    ingress_services: [{ port: 23, proto: 'tcp' }],
  })
  t.notOk('error' in deny, JSON.stringify(deny))
  const name = 'offices\u202e\u200b<img src=x onerror=alert(1)>'
  // As somebody with a key of their own makes one: our tools take no hidden characters.
  const pce = connectPce((bench.service.config as SharedConfig).pce, createCallTracker(), pino({ level: 'silent' }))
  t.teardown(() => pce.close())
  const list = await pce.ipLists.create({ name, ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
  const asked = await bench.call('ann', ALL, { hrefs: [rs] })
  const shown = await shownOf(bench, asked)
  t.equal(shown.summary, asked.summary)
  partial(t, shown, {
    objects_total: 1,
    workloads_affected: Number,
    objects: [
      {
        kind: 'rule set',
        name: 'web access',
        href: rs,
        change: 'create',
        updated_at: String,
        updated_by: String,
      },
    ],
    not_included: {
      total: 1,
      objects: [
        {
          kind: 'IP list',
          change: 'create',
          href: list.href,
          name: 'offices⟨U+202E⟩⟨U+200B⟩<img src=x onerror=alert(1)>',
        },
      ],
    },
    draft: { first_edit: String, last_edit: String, by: { length: 1 } },
    facts: { change_description: 'Provisioned via MCP' },
    truncated: undefined,
  })
  const [object] = shown.objects
  t.same(
    object!.fields.find(({ path }) => path === 'name'),
    { path: 'name', after: 'web access' },
  )
  t.same(
    object!.parts!.map(({ kind, change }) => `${change} ${kind}`),
    ['create allow rule', 'create deny rule'],
  )
  t.same(
    object!.parts!.map(({ effect }) => effect),
    ['widening', 'narrowing'],
  )
  partial(
    t,
    object!.parts![0]!.fields.find(({ path }) => path === 'ingress_services'),
    {
      after: [{ port: 443, proto: 6 }],
      before: undefined,
    },
  )
})

t.test('an edit shows both sides; a dependency is named with what needs it', async (t) => {
  const bench = await startApproving(t)
  const created = await bench.call('ann', 'create-iplist', {
    name: 'offices',
    ip_ranges: [{ from_ip: '192.0.2.0/24' }],
  })
  const href = created.iplist?.href ?? created.href
  const first = await bench.call('ann', ALL)
  await bench.decide(first.approval_id, 'approved', bench.person('ann'))
  partial(t, await bench.call('ann', ALL), { version: Number })
  bench.clock.now += 1000
  const edited = await bench.call('ann', 'update-iplist', {
    href,
    description: 'new',
    ip_ranges: [{ from_ip: '192.0.2.0/23' }],
  })
  t.notOk('error' in edited, JSON.stringify(edited))
  const shown = await shownOf(bench, await bench.call('ann', ALL))
  partial(t, shown.objects, [{ kind: 'IP list', name: 'offices', change: 'update' }])
  const paths = shown.objects[0]!.fields.map(({ path }) => path)
  t.ok(paths.includes('ip_ranges'))
  const ranges = shown.objects[0]!.fields.find(({ path }) => path === 'ip_ranges')
  const sides = { before: [{ from_ip: '192.0.2.0/24' }], after: [{ from_ip: '192.0.2.0/23' }] }
  t.same(ranges, { path: 'ip_ranges', ...sides }, 'an exclusion that is none is not shown')
})

t.test('a batch of ringfences: each rule of each application, those that deny first', async (t) => {
  const bench = await startApproving(t, { estate: { pollsUntilDone: 1, retryAfter: 0 } })
  const args = { apps: [{ app_name: 'payments', env_name: 'prod', selective: true }] }
  const asked = await bench.call('ann', 'ringfence-batch', args)
  const shown = await shownOf(bench, asked)
  partial(t, shown, {
    objects_total: 1,
    objects: [{ kind: 'rule set', change: 'create', note: /takes effect when/ }],
    workloads_affected: undefined,
  })
  const parts = shown.objects[0]!.parts!
  t.equal(parts[0]!.kind, 'allow rule', 'what opens comes first')
  t.same(new Set(parts.map(({ effect }) => effect)), new Set(['widening', 'narrowing']))
  t.equal(shown.objects[0]!.effect, 'mixed')
  t.equal(shown.effect, 'mixed')
  t.same(
    parts.map(({ fields }) => fields.map(({ path }) => path).join()),
    parts.map(() => 'consumers,providers,services'),
  )
})

t.test('what was not compared is said first, and is not taken for harmless', async (t) => {
  const bench = await startApproving(t)
  const pce = connectPce((bench.service.config as SharedConfig).pce, createCallTracker(), pino({ level: 'silent' }))
  t.teardown(() => pce.close())
  for (let n = 0; n < 102; n++) await pce.ipLists.create({ name: `list ${n}`, ip_ranges: [{ from_ip: '192.0.2.1' }] })
  const { warnings, objects, effect } = await shownOf(bench, await bench.call('ann', ALL))
  t.equal(objects.length, 102)
  const unread = objects.filter(({ note }) => /was not read: look at it in the PCE/.test(note ?? ''))
  t.same(
    unread.map(({ effect, fields }) => ({ effect, fields })),
    [
      { effect: 'undecided', fields: [] },
      { effect: 'undecided', fields: [] },
    ],
  )
  partial(
    t,
    warnings[0]!,
    /^What changes in 2 objects of 102 was not read, .* look at each in the PCE before you decide\.$/,
  )
  t.equal(effect, 'undecided')
})

t.test('what is too large is named, and says so', async (t) => {
  const bench = await startApproving(t)
  const { href } =
    (await bench.call('ann', 'create-iplist', { name: 'small', ip_ranges: [{ from_ip: '192.0.2.1' }] })).iplist ?? {}
  for (let n = 0; n < 15; n++) {
    const ranges = Array.from({ length: 1000 }, (_, at) => ({ from_ip: `10.${n}.${at >> 8}.${at & 255}` }))
    const made = await bench.call('ann', 'create-iplist', { name: `large ${n}`, ip_ranges: ranges })
    if ('error' in made) throw new Error(JSON.stringify(made).slice(0, 500))
  }
  const shown = await shownOf(bench, await bench.call('ann', ALL))
  t.equal(shown.truncated, true)
  t.ok(Buffer.byteLength(JSON.stringify(shown)) <= MOST_SHOWN_BYTES)
  t.equal(shown.objects.length, 16, 'each is named')
  const left = shown.objects.filter(({ note }) => /left out here/.test(note ?? ''))
  t.ok(left.length > 0 && left.length < 16)
  t.ok(left.every(({ fields }) => fields.length === 0))
  t.ok(href === undefined || shown.objects.some((object) => object.href === href))
})
