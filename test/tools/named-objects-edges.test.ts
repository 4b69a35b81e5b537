/** Labels, IP lists and services where it gets narrow: lost answers, odd names, what is left out, what is too large. */
import t, { type Test } from 'tap'
import createIplist from '../../tools/ip-lists/create-iplist.js'
import deleteIplist from '../../tools/ip-lists/delete-iplist.js'
import updateIplist from '../../tools/ip-lists/update-iplist.js'
import { partial } from '../partial.js'
import { startBench, type Bench, type Json } from './harness.js'

const DRAFT = '/orgs/1/sec_policy/draft'

/** A refusal that leaves no trace at the PCE. */
async function refused(t: Test, bench: Bench, tool: string, args: object, code: string): Promise<Json> {
  bench.writes()
  const error = await bench.fails(tool, args, code)
  t.same(bench.writes(), [], 'nothing was written')
  return error
}

t.test('leaving something out of a replaced list is a change', async (t) => {
  const bench = await startBench(t)

  await t.test('the end, the exclusion and the description of a range', async (t) => {
    const range = { from_ip: '10.20.0.1', to_ip: '10.20.0.9', exclusion: true, description: 'printers' }
    const others = [{ from_ip: '10.30.0.0/16' }, { from_ip: '10.20.0.1' }]
    const { href } = await bench.ok('create-iplist', { name: 'Ranges', ip_ranges: [range, others[0]] })
    const stored = () => bench.simulator.state.find(href)?.ip_ranges as Json[]
    for (const field of ['to_ip', 'exclusion', 'description'] as const) {
      const { [field]: _gone, ...left } = range
      await bench.ok('update-iplist', { href, ip_ranges: [range, others[0]] })
      bench.writes()
      const answer = await bench.ok('update-iplist', { href, ip_ranges: [left, others[0]] })
      t.same(answer.updated_fields, ['ip_ranges'], `without ${field}`)
      partial(t, answer.previous.ip_ranges[0], { [field]: range[field] })
      t.equal(bench.writes().length, 1)
      t.notOk(stored()[0][field], `${field} is gone`)
    }
    await bench.ok('update-iplist', { href, ip_ranges: [range, ...others] })
    bench.writes()
    const same = { href, ip_ranges: [...others.map((one) => ({ exclusion: false, ...one })).reverse(), range] }
    t.same((await bench.ok('update-iplist', same)).updated_fields, [], 'another order is no change')
    t.same(bench.writes(), [])
  })

  await t.test('the end of a range of ports, the type of an ICMP message', async (t) => {
    const wide = [
      { port: 8000, to_port: 8099, proto: 'tcp' },
      { proto: 'icmp', icmp_type: 8 },
    ]
    const { service } = await bench.ok('create-service', { name: 'Narrow me', service_ports: wide })
    const single = await bench.ok('update-service', {
      href: service.href,
      service_ports: [{ port: 8000, proto: 'tcp' }, wide[1]],
    })
    partial(t, single, { updated_fields: ['service_ports'], previous: { service_ports: [{ to_port: 8099 }, {}] } })
    const open = { href: service.href, service_ports: [{ port: 8000, to_port: 8000, proto: 6 }, { proto: 1 }] }
    partial(t, await bench.ok('update-service', open), { updated_fields: ['service_ports'] })
    partial(t, await bench.ok('update-service', open), { updated_fields: [] })
    t.same(bench.simulator.state.find(service.href)?.service_ports, [{ port: 8000, proto: 6 }, { proto: 1 }])
  })

  await t.test('a PCE that spells out defaults has stored it as sent', async (t) => {
    const { service } = await bench.ok('create-service', { name: 'Spelled', service_ports: [{ proto: 'udp' }] })
    const spelled = { port: -1, to_port: null, proto: 17, icmp_type: null }
    bench.simulator.faults.add({
      kind: 'status',
      path: service.href,
      method: 'GET',
      times: 2,
      status: 200,
      body: { ...service, service_ports: [spelled] },
    })
    bench.writes()
    const args = { href: service.href, service_ports: [{ proto: 'udp' }] }
    partial(t, await bench.ok('update-service', args), { updated_fields: [] })
    t.same(bench.writes(), [])
  })

  await t.test('reports a PCE that stores more than was sent', async (t) => {
    const { href } = await bench.ok('create-iplist', { name: 'Grown', ip_ranges: [{ from_ip: '10.1.0.1' }] })
    bench.simulator.faults.add({
      kind: 'status',
      path: href,
      method: 'GET',
      times: 1,
      skip: 2,
      status: 200,
      body: { href, name: 'Grown', ip_ranges: [{ from_ip: '10.2.0.1', to_ip: '10.2.255.255', exclusion: false }] },
    })
    partial(t, await bench.ok('update-iplist', { href, ip_ranges: [{ from_ip: '10.2.0.1' }] }), {
      differences: [{ field: 'ip_ranges', stored: [{ to_ip: '10.2.255.255' }] }],
    })
  })
})

t.test('a lost answer', async (t) => {
  const bench = await startBench(t)
  const lose = (path: string, method: string, times = 1) =>
    bench.simulator.faults.add({ kind: 'commit-then-drop', path, method, times })

  await t.test('of a deletion: reports the object as deleted', async (t) => {
    const { label } = await bench.ok('create-label', { key: 'app', value: 'lost-label' })
    lose(label.href, 'DELETE')
    const answer = await bench.ok('delete-label', { key: 'app', value: 'lost-label' })
    partial(t, answer, { href: label.href, message: /^Deleted/ })
    await bench.fails('delete-label', { key: 'app', value: 'lost-label' }, 'not_found')

    const { href } = await bench.ok('create-iplist', { name: 'Lost', ip_ranges: [{ from_ip: '10.0.0.1' }] })
    lose(href, 'DELETE')
    partial(t, await bench.ok('delete-iplist', { name: 'Lost' }), { href, message: /Deleted/ })
  })

  await t.test('of a change: is retried; without any answer, never claims that nothing happened', async (t) => {
    const { label } = await bench.ok('create-label', { key: 'app', value: 'before' })
    lose(label.href, 'PUT')
    partial(t, await bench.ok('update-label', { key: 'app', value: 'before', new_value: 'after' }), {
      label: { value: 'after' },
    })
    lose(label.href, 'PUT', 20)
    const error = await bench.fails('update-label', { href: label.href, new_value: 'later' }, 'outcome_unknown')
    t.match(error.message, new RegExp(`PUT .*${label.href}`))
    bench.simulator.faults.clear()
    const now = await bench.ok('update-label', { key: 'app', value: 'later', new_value: 'later' })
    t.same(now.updated_fields, [], 'the next look does not trust a list of labels from before')
  })

  await t.test('of a creation: the object may exist, and is never sent twice', async (t) => {
    lose(`${DRAFT}/ip_lists`, 'POST')
    bench.writes()
    const args = { name: 'Maybe', ip_ranges: [{ from_ip: '10.0.0.1' }] }
    await bench.fails('create-iplist', args, 'outcome_unknown')
    t.equal(bench.writes().length, 1)
    partial(t, await bench.fails('create-iplist', args, 'already_exists'), { existing_iplist: { name: 'Maybe' } })
  })
})

t.test('a call that is cancelled before its write does not write', async (t) => {
  const bench = await startBench(t)
  /** The client, whose call is cancelled as soon as this read has ended. */
  const cancelAfter = (api: 'ipLists' | 'services', method: string) => {
    const controller = new AbortController()
    const watch = <T extends object>(target: T, choose: (key: string) => unknown): T =>
      new Proxy(target, {
        get: (object, key) => choose(String(key)) ?? bound(Reflect.get(object, key, object), object),
      })
    const bound = (value: unknown, self: object): unknown =>
      typeof value === 'function' ? (value.bind(self) as unknown) : value
    const watched = watch(bench.pce[api] as object, (key) =>
      key !== method
        ? undefined
        : async (...args: unknown[]) => {
            const read = (bench.pce[api] as Json)[method] as (...args: unknown[]) => Promise<unknown>
            const answer = await read.apply(bench.pce[api], args)
            controller.abort()
            return answer
          },
    )
    const pce = watch(bench.pce, (key) => (key === api ? watched : undefined))
    const inOrder = (_object: string, work: (turn: object) => unknown) => work({ others: new Set(), note: () => {} })
    return { pce, inOrder, signal: controller.signal, now: () => 0, limits: { responseBudgetBytes: 80_000 } } as Json
  }
  const aborted = { name: 'AbortError' }
  bench.writes()
  const branch = { name: 'Branch offices' }
  const changed = { ...branch, description: 'x' }
  await t.rejects(updateIplist.handler(changed, cancelAfter('ipLists', 'getByReference')), aborted)
  await t.rejects(deleteIplist.handler(branch, cancelAfter('ipLists', 'scan')), aborted)
  const fresh = { name: 'Fresh', ip_ranges: [{ from_ip: '10.0.0.1' }] }
  await t.rejects(createIplist.handler(fresh, cancelAfter('ipLists', 'getPage')), aborted)
  t.same(bench.writes(), [])
  await t.resolves(createIplist.handler(fresh, cancelAfter('ipLists', 'getByReference')), 'but what is written is told')
})

t.test('messages say what will happen', async (t) => {
  const bench = await startBench(t)

  await t.test('to an object marked for deletion, in a dry run and in a change', async (t) => {
    const name = 'Branch offices - guest Wi-Fi'
    partial(t, await bench.ok('delete-iplist', { name }), { message: /stays in force until/ })
    bench.writes()
    partial(t, await bench.ok('delete-iplist', { name, dry_run: true }), {
      dry_run: true,
      message: /pending/,
      requests: [],
    })
    const changed = await bench.ok('update-iplist', { name, description: 'x' })
    partial(t, changed.warnings, [/still pending/])
    t.notMatch(changed.message, /takes effect/)
    const taken = await bench.fails('create-iplist', { name, ip_ranges: [{ from_ip: '10.0.0.1' }] }, 'already_exists')
    t.match(taken.message, /deletion is pending/)
  })

  await t.test('to a built-in object', async (t) => {
    const any = { name: 'Any (0.0.0.0/0 and ::/0)' }
    const all = { name: 'All Services' }
    for (const [tool, args] of [
      ['update-iplist', { ...any, description: 'x' }],
      ['delete-iplist', any],
      ['update-service', { ...all, description: 'x' }],
      ['delete-service', all],
    ] as const) {
      partial(t, await bench.ok(tool, { ...args, dry_run: true }), { warnings: [/built in/] }, tool)
      const error = await bench.fails(tool, args, 'pce_error')
      partial(t, error, { http_status: 406, token: 'input_validation_error' })
      t.notOk('used_by' in error, 'does not advise removing it from every rule')
      if (tool.startsWith('delete')) t.match(error.hint, /built in/)
    }
  })

  await t.test('on a refusal unrelated to its uses', async (t) => {
    const unused = { name: 'Unused', service_ports: [{ port: 1, proto: 6 }] }
    const { href } = (await bench.ok('create-service', unused)).service
    const no = { kind: 'status', path: href, method: 'DELETE', times: 1, status: 406, body: [{ token: 'no' }] } as const
    bench.simulator.faults.add(no)
    const error = await bench.fails('delete-service', { href }, 'pce_error')
    partial(t, error, { token: 'no', used_by: [], used_by_total: 0 })
    t.notMatch(error.hint ?? '', /used_by/)
    const { label } = await bench.ok('create-label', { key: 'app', value: 'gone-meanwhile' })
    bench.simulator.faults.add({ ...no, path: label.href })
    const refusal = await bench.fails('delete-label', { key: 'app', value: 'gone-meanwhile' }, 'pce_error')
    partial(t, refusal, { token: 'no', used_by: [] })
    t.notMatch(refusal.hint ?? '', /used_by/)
  })

  await t.test('with a rule changed in draft but still in force', async (t) => {
    const { href } = await bench.ok('create-iplist', { name: 'Once used', ip_ranges: [{ from_ip: '10.0.0.1' }] })
    const rule = { providers: ['ams'], consumers: ['iplist:Once used'], ingress_services: [{ service: 'HTTPS' }] }
    const user = { name: 'used it', scopes: [['app=payments']], rules: [rule] }
    const { ruleset } = await bench.ok('create-ruleset', user)
    await bench.pce.provisionPolicyChanges('in force', [href, ruleset.href])
    await bench.ok('update-sec-rule', { href: ruleset.rules[0].href, consumers: ['ams'] })
    const error = await bench.fails('delete-iplist', { href }, 'pce_error')
    partial(t, error, { used_by: [{ href: ruleset.href, versions: ['active'] }], hint: /provision/ })
  })

  await t.test('which a dry run foresees', async (t) => {
    const warned = async (tool: string, args: object) => (await bench.ok(tool, { ...args, dry_run: true })).warnings
    const { href } = await bench.ok('create-iplist', { name: 'Foreseen', ip_ranges: [{ from_ip: '10.0.0.1' }] })
    const { service } = await bench.ok('create-service', { name: 'Foreseen', service_ports: [{ port: 9, proto: 6 }] })
    t.same(
      [await warned('delete-iplist', { href }), await warned('delete-service', { href: service.href })],
      [undefined, undefined],
    )
    const rule = { providers: ['ams'], consumers: ['iplist:Foreseen'], ingress_services: [{ service: 'Foreseen' }] }
    const user = { name: 'foresees', scopes: [['app=payments']], rules: [rule] }
    const { ruleset } = await bench.ok('create-ruleset', user)
    const inDraft = ['The PCE will refuse it while it is used by: "foresees" (draft).']
    t.same(await warned('delete-iplist', { href }), inDraft)
    t.same(await warned('delete-service', { href: service.href }), inDraft)
    await bench.pce.provisionPolicyChanges('in force', [href, service.href, ruleset.href])
    const inBoth = ['The PCE will refuse it while it is used by: "foresees" (draft and active).']
    t.same(await warned('delete-iplist', { href }), inBoth)
    await bench.fails('delete-iplist', { href }, 'pce_error')

    const answers = (path: string, status: number) =>
      bench.simulator.faults.add({ kind: 'status', path, method: 'GET', times: 1, status, body: [{ token: 'no' }] })
    answers('/orgs/1/sec_policy/draft/enforcement_boundaries', 403)
    t.same(await warned('delete-iplist', { href }), [
      ...inBoth,
      'Whether enforcement boundaries use it could not be read.',
    ])
    answers('/orgs/1/sec_policy/draft/enforcement_boundaries', 404)
    t.same(await warned('delete-iplist', { href }), inBoth, 'what the PCE does not have uses nothing')
    const { deny_rules: _embedded, ...apart } = await bench.pce.ruleSets.getByReference(ruleset.href)
    const path = '/orgs/1/sec_policy/draft/rule_sets'
    bench.simulator.faults.add({ kind: 'status', path, method: 'GET', times: 1, status: 200, body: [apart] })
    answers(`${ruleset.href}/deny_rules`, 403)
    t.same(await warned('delete-service', { href: service.href }), [
      ...inBoth,
      'Whether deny rules use it could not be read.',
    ])
  })

  await t.test('with uses that are not rules', async (t) => {
    const { service } = await bench.ok('create-service', { name: 'Backend', service_ports: [{ port: 9, proto: 6 }] })
    const user = await bench.pce.virtualServices.create({ name: 'backend.vs', service: { href: service.href } })
    const error = await bench.fails('delete-service', { name: 'Backend' }, 'pce_error')
    partial(t, error, { token: 'service_referenced', used_by: [{ href: user.href, name: 'backend.vs' }] })
  })
})

t.test('compares names exactly and shows hidden characters as escapes', async (t) => {
  const bench = await startBench(t)
  const hidden = 'Branch\u202E offices\u0007\u200B'
  const body = { name: hidden, ip_ranges: [{ from_ip: '10.0.0.1' }] }
  const { href } = await bench.pce.ipLists.create(body)

  await t.test('a name that looks like another is a different name', async (t) => {
    const lookalike = 'Br\u0430nch offices'
    const { near_names: near } = await refused(t, bench, 'delete-iplist', { name: lookalike }, 'not_found')
    t.ok(near.includes('Branch offices'))
    for (const name of ['branch offices', ' Branch offices', 'Branch offices ', 'Branch  offices']) {
      await refused(t, bench, 'delete-iplist', { name }, 'not_found')
    }
    await refused(t, bench, 'update-iplist', { href, new_name: 'Tab\there' }, 'invalid_argument')
    await refused(t, bench, 'create-iplist', { ...body, name: 'A\u200Bb' }, 'invalid_argument')
    await refused(t, bench, 'create-service', { name: 'A\u200Bb', service_ports: [{ proto: 6 }] }, 'invalid_argument')
    await refused(t, bench, 'update-service', { name: 'SSH', new_name: 'S\u200BH' }, 'invalid_argument')
    await refused(t, bench, 'update-label', { key: 'env', value: 'prod', new_value: 'pr\u200Bod' }, 'invalid_argument')
  })

  await t.test('in every message and answer', async (t) => {
    const visible = 'Branch⟨U+202E⟩ offices⟨U+0007⟩⟨U+200B⟩'
    const planned = await bench.ok('update-iplist', { href, description: 'a\u200Bb', dry_run: true })
    t.equal(planned.message, `Would change the IP list "${visible}": description.`)
    t.same(planned.requests, [{ method: 'PUT', path: href, body: { description: 'a⟨U+200B⟩b' } }])
    const changed = await bench.ok('update-iplist', { href, new_name: 'Honest' })
    t.same(changed.previous, { name: visible })
    await bench.pce.ipLists.update(href, { name: hidden })
    t.equal((await bench.ok('delete-iplist', { name: visible })).name, visible, 'and what is shown names the object')
  })

  await t.test('keeping its name causes no warning about others of that name', async (t) => {
    const twin = { name: 'Twin', service_ports: [{ port: 1, proto: 6 }] }
    await bench.pce.services.create(twin)
    const second = await bench.pce.services.create(twin)
    const answer = await bench.ok('update-service', { href: second.href, new_name: 'Twin', description: 'second' })
    t.same(answer.updated_fields, ['description'])
    const other = { href: second.href, new_name: 'SSH' }
    partial(t, await refused(t, bench, 'update-service', other, 'already_exists'), {
      existing_service: { name: 'SSH' },
    })
  })

  await t.test('a numbered version cannot be changed', async (t) => {
    const numbered = { href: `/orgs/1/sec_policy/1/ip_lists/4`, description: 'x' }
    await refused(t, bench, 'update-iplist', numbered, 'invalid_href')
    await refused(t, bench, 'delete-service', { href: '/orgs/1/sec_policy/12/services/2' }, 'invalid_href')
  })
})

t.test('contents of an IP list', async (t) => {
  const bench = await startBench(t)
  const create = (args: object) => bench.ok('create-iplist', { name: 'n', ip_ranges: [], dry_run: true, ...args })
  const body = async (args: object) => (await create(args)).requests[0].body

  await t.test('addresses and networks of both families', async (t) => {
    const given = ['0.0.0.0/0', '::/0', '10.0.0.5/8', '::ffff:10.0.0.1', ' 2001:db8::1 ', 'fe80::/10']
    const { ip_ranges: ranges } = await body({ ip_ranges: given.map((from) => ({ from_ip: from })) })
    t.same(
      ranges.map((range: Json) => range.from_ip),
      given.map((text) => text.trim()),
    )
    partial(t, await body({ ip_ranges: [{ from_ip: '10.0.0.7', to_ip: '10.0.0.7' }] }), { ip_ranges: [{}] })
    for (const range of [
      { from_ip: '::/129' },
      { from_ip: 'fe80::1%eth0' },
      { from_ip: '::ffff:10.0.0.1', to_ip: '10.0.0.9' },
      { from_ip: '10.0.0.0/255.0.0.0' },
      { from_ip: 'example.com' },
      { from_ip: '::2', to_ip: '::1' },
    ]) {
      await refused(t, bench, 'create-iplist', { name: 'n', ip_ranges: [range] }, 'invalid_argument')
    }
  })

  await t.test('domain names, bare or with a description, with a leading star only', async (t) => {
    const fqdns = ['*.example.com', '*example.com', 'a_b.example', { fqdn: ' www.example ', description: 'site' }]
    t.same((await body({ fqdns })).fqdns, [
      { fqdn: '*.example.com' },
      { fqdn: '*example.com' },
      { fqdn: 'a_b.example' },
      { fqdn: 'www.example', description: 'site' },
    ])
    for (const bad of ['*', '*.*.example', 'www.*.example', 'a*.example', 'example.com.', 'b\u00FCcher.example']) {
      const error = await refused(
        t,
        bench,
        'create-iplist',
        { name: 'n', ip_ranges: [], fqdns: [bad] },
        'invalid_argument',
      )
      partial(t, error, { argument: 'fqdns', invalid: [bad] })
    }
    for (const bad of [{}, { fqdn: 7 }, { fqdn: 'a.example', note: 'x' }, { fqdn: 'a.example', description: 7 }]) {
      await refused(t, bench, 'create-iplist', { name: 'n', ip_ranges: [], fqdns: [bad] }, 'invalid_argument')
    }
  })

  await t.test('is never empty, even after a change', async (t) => {
    const names = await bench.ok('create-iplist', { name: 'Names', ip_ranges: [], fqdn: 'a.example' })
    await refused(t, bench, 'update-iplist', { href: names.href, fqdns: [] }, 'invalid_argument')
    await refused(t, bench, 'update-iplist', { name: 'Branch offices', ip_ranges: [] }, 'invalid_argument')
    const both = { href: names.href, ip_ranges: [{ from_ip: '10.0.0.1' }] }
    partial(t, await bench.ok('update-iplist', both), { fqdns: [{}], ip_ranges: [{}] })
    partial(t, await bench.ok('update-iplist', { href: names.href, ip_ranges: [] }), { fqdns: [{}], ip_ranges: [] })
    const moved = { href: names.href, fqdns: [], ip_ranges: [{ from_ip: '10.0.0.1' }] }
    const without = await bench.ok('update-iplist', moved)
    partial(t, without, { ip_ranges: [{ from_ip: '10.0.0.1' }] })
    t.notOk('fqdns' in without)
    partial(t, await bench.ok('update-iplist', { href: names.href, description: '' }), {
      updated_fields: ['description'],
    })
  })

  await t.test('more than an answer can show is written in full, and the answer says what it omits', async (t) => {
    const ranges = Array.from({ length: 2000 }, (_, at) => ({ from_ip: `10.${at >> 8}.${at & 255}.1` }))
    const bytes = (answer: Json) => Buffer.byteLength(JSON.stringify(answer))
    const args = { name: 'Feed', ip_ranges: ranges }
    const plan = await bench.ok('create-iplist', { ...args, dry_run: true })
    const made = await bench.ok('create-iplist', args)
    for (const answer of [plan, made]) {
      t.ok(bytes(answer) <= 24_000, `${bytes(answer)} bytes`)
      partial(t, answer.warnings, [/too large/])
    }
    t.notOk(made.differences)
    t.equal((bench.simulator.state.find(made.href)?.ip_ranges as Json[]).length, ranges.length)
    t.same((await bench.ok('update-iplist', { href: made.href, ip_ranges: [...ranges].reverse() })).updated_fields, [])
    const fewer = await bench.ok('update-iplist', { href: made.href, ip_ranges: ranges.slice(1) })
    t.ok(bytes(fewer) <= 24_000)
    partial(t, fewer, { updated_fields: ['ip_ranges'], warnings: [/too large/] })
    const page = await bench.ok('get-iplists', { name: 'Feed' })
    t.ok(bytes(page) <= 24_000)
    partial(t, page, { total_count: 1, truncated: false, ip_lists: [{ omitted: /too large/i }] })
  })
})

t.test('contents of a service', async (t) => {
  const bench = await startBench(t)
  const ports = async (...service_ports: object[]) => {
    const { requests } = await bench.ok('create-service', { name: 'n', service_ports, dry_run: true })
    return requests[0].body.service_ports
  }
  t.same(await ports({ port: 0, to_port: 65_535, proto: 'UDP' }), [{ port: 0, to_port: 65_535, proto: 17 }])
  t.same(await ports({ port: 22, to_port: 22, proto: '6' }), [{ port: 22, proto: 6 }])
  t.same(await ports({ proto: 'ipv6-icmp', icmp_type: 128 }, { proto: 47 }), [
    { proto: 58, icmp_type: 128 },
    { proto: 47 },
  ])
  for (const bad of [
    { port: 0, proto: 'tcp' },
    { port: -1, to_port: 9, proto: 'tcp' },
    { port: -2, proto: 'tcp' },
    { to_port: 9, proto: 'tcp' },
    { proto: -1 },
    { proto: 256 },
    { port: 80, proto: 'icmp' },
    { proto: 'icmp', icmp_type: 256 },
  ]) {
    await refused(t, bench, 'create-service', { name: 'n', service_ports: [bad] }, 'invalid_service_definition')
    await refused(t, bench, 'update-service', { name: 'SSH', service_ports: [bad] }, 'invalid_service_definition')
  }
  // The schema has the type of an ICMP code, so that one is refused before the contents are looked at.
  const text = { service_ports: [{ proto: 'icmp', icmp_code: 'x' }] }
  await refused(t, bench, 'create-service', { name: 'n', ...text }, 'invalid_argument')
  const empty = { service_ports: [{ proto: 6 }], windows_services: [] }
  partial(t, await bench.ok('create-service', { name: 'n', ...empty, dry_run: true }), { dry_run: true })
  const both = { name: 'SSH', service_ports: [{ proto: 6 }], windows_egress_services: [{ process_name: 'x' }] }
  await refused(t, bench, 'update-service', both, 'conflicting_service_definition')

  await t.test('more than an answer can show', async (t) => {
    const many = Array.from({ length: 1_000 }, (_, at) => ({ process_name: `C:\\${'x'.repeat(200)}\\${at}.exe` }))
    const made = await bench.ok('create-service', { name: 'Many', windows_egress_services: many })
    const changed = await bench.ok('update-service', { name: 'Many', windows_egress_services: many.slice(1) })
    for (const answer of [made, changed]) {
      t.ok(JSON.stringify(answer).length <= 24_000)
      partial(t, answer.warnings, [/too large/])
      t.notOk(answer.discarded_fields)
    }
    partial(t, (await bench.ok('get-services', { name: 'Many' })).services, [{ omitted: /too large/i }])
  })

  await t.test('a list stored as empty counts as dropped', async (t) => {
    bench.simulator.faults.add({
      kind: 'status',
      path: /\/services\/\d+$/,
      method: 'GET',
      times: 1,
      status: 200,
      body: { href: `${DRAFT}/services/1`, name: 'Emptied', windows_services: [] },
    })
    const answer = await bench.ok('create-service', { name: 'Emptied', windows_services: [{ process_name: 'x' }] })
    partial(t, answer, { discarded_fields: ['windows_services'] })
  })
})
