/** Labels, IP lists and services, changed and deleted: the right object or none, all or nothing, read back. */
import t, { type Test } from 'tap'
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

const hrefOf = async (bench: Bench, tool: string, list: string, name: string): Promise<string> => {
  const answer = await bench.ok(tool, { name })
  return answer[list].find((object: Json) => object.name === name).href
}

t.test('update-label', async (t) => {
  const bench = await startBench(t)
  const { label } = await bench.ok('create-label', { key: 'app', value: 'audit-log' })
  await bench.ok('create-label', { key: 'app', value: 'audit-log-eu' })

  await t.test('renames by exact key and value and reports the previous value', async (t) => {
    bench.writes()
    const answer = await bench.ok('update-label', { key: 'app', value: 'audit-log', new_value: 'insight' })
    partial(t, answer, {
      label: { href: label.href, key: 'app', value: 'insight' },
      previous_value: 'audit-log',
      updated_fields: ['value'],
    })
    t.notOk('previous' in answer)
    partial(t, bench.writes(), [{ method: 'PUT', path: `/api/v2${label.href}`, body: { value: 'insight' } }])
    t.equal(bench.simulator.state.find(label.href)?.value, 'insight')
    await bench.fails('get-workloads', { labels: ['app=audit-log'] }, 'unresolved_label_filter')
    partial(
      t,
      await bench.ok('get-workloads', { labels: ['app=insight'] }),
      { total: 0 },
      'the cache knows the new value',
    )
  })

  await t.test('renames by href; the same value writes nothing', async (t) => {
    await bench.ok('update-label', { href: label.href, new_value: 'insights' })
    bench.writes()
    const again = await bench.ok('update-label', { href: label.href, new_value: 'insights' })
    partial(t, again, { updated_fields: [], message: /already/ })
    t.same(bench.writes(), [])
  })

  await t.test('refuses anything but exactly one label, and a taken value', async (t) => {
    const near = await refused(t, bench, 'update-label', { key: 'app', value: 'insight', new_value: 'x' }, 'not_found')
    t.ok(near.near_names.includes('insights'))
    await refused(t, bench, 'update-label', { key: 'app', value: 'Insights', new_value: 'x' }, 'not_found')
    await refused(t, bench, 'update-label', { new_value: 'x' }, 'missing_identifier')
    await refused(t, bench, 'update-label', { key: 'app', new_value: 'x' }, 'missing_identifier')
    const both = { href: label.href, key: 'app', value: 'insights', new_value: 'x' }
    await refused(t, bench, 'update-label', both, 'conflicting_identifiers')
    await refused(t, bench, 'update-label', { href: '/orgs/2/labels/1', new_value: 'x' }, 'invalid_href')
    await refused(t, bench, 'update-label', { href: `${DRAFT}/services/1`, new_value: 'x' }, 'invalid_href')
    await refused(t, bench, 'update-label', { href: '/orgs/1/labels/99999', new_value: 'x' }, 'not_found')
    await refused(t, bench, 'update-label', { href: label.href }, 'invalid_argument')
    await refused(t, bench, 'update-label', { href: label.href, new_value: ' ' }, 'invalid_argument')
    const taken = await refused(
      t,
      bench,
      'update-label',
      { href: label.href, new_value: 'audit-log-eu' },
      'already_exists',
    )
    partial(t, taken.existing_label, { key: 'app', value: 'audit-log-eu' })
  })

  await t.test('a dry run shows the request and warns about values that differ in case', async (t) => {
    bench.writes()
    const args = { href: label.href, new_value: 'Audit-Log-EU', dry_run: true }
    partial(t, await bench.ok('update-label', args), {
      dry_run: true,
      requests: [{ method: 'PUT', path: label.href, body: { value: 'Audit-Log-EU' } }],
      warnings: [/audit-log-eu/],
      label: { value: 'Audit-Log-EU' },
      previous_value: 'insights',
    })
    t.same(bench.writes(), [])
  })
})

t.test('delete-label', async (t) => {
  const bench = await startBench(t)
  const { label } = await bench.ok('create-label', { key: 'app', value: 'kiosk' })
  await bench.ok('create-label', { key: 'app', value: 'kiosk-shop' })

  await t.test('never matches part of a value', async (t) => {
    await refused(t, bench, 'delete-label', { key: 'app', value: 'kiosk-sho' }, 'not_found')
    await refused(t, bench, 'delete-label', { key: 'app' }, 'invalid_argument')
  })

  await t.test('shows the request in a dry run, then deletes exactly this one', async (t) => {
    const args = { key: 'app', value: 'kiosk' }
    bench.writes()
    const request = { method: 'DELETE', path: label.href }
    partial(t, await bench.ok('delete-label', { ...args, dry_run: true }), { dry_run: true, requests: [request] })
    t.same(bench.writes(), [])
    partial(t, await bench.ok('delete-label', args), { href: label.href, ...args, message: /Deleted/ })
    partial(t, bench.writes(), [{ method: 'DELETE', path: `/api/v2${label.href}` }])
    await bench.fails('get-workloads', { labels: ['app=kiosk'] }, 'unresolved_label_filter')
    await bench.fails('delete-label', args, 'not_found')
    partial(t, await bench.ok('get-labels', { key: 'app', value: 'kiosk-shop' }), { total_count: 1 })
  })

  await t.test('keeps a label in use and says what uses it', async (t) => {
    const error = await bench.fails('delete-label', { key: 'app', value: 'payments' }, 'pce_error')
    partial(t, error, { http_status: 406, token: /^label_/, hint: /used_by/ })
    t.ok(error.used_by.includes('workload'), JSON.stringify(error.used_by))
    partial(t, await bench.ok('delete-label', { key: 'app', value: 'payments', dry_run: true }), {
      warnings: [/workload/],
    })
  })
})

t.test('get-iplists', async (t) => {
  const bench = await startBench(t)

  await t.test('always returns lists, whatever the PCE sends for an empty one', async (t) => {
    const { ip_lists: lists } = await bench.ok('get-iplists', { name: 'Branch offices' })
    t.same(
      lists.map(({ name }: Json) => name),
      ['Branch offices', 'Branch offices - guest Wi-Fi'],
    )
    partial(t, lists[0].ip_ranges, [{ exclusion: false }, { to_ip: String, exclusion: true }])
    t.same(lists[0].fqdns, [])
  })

  await t.test('filters by part of a domain name or address, and pages', async (t) => {
    partial(t, await bench.ok('get-iplists', { fqdn: 'bankhub' }), { total_count: 1 })
    partial(t, await bench.ok('get-iplists', { ip_address: '203.0.113' }), { total_count: 2 })
    const all = await bench.ok('get-iplists')
    const names = new Set<string>()
    let cursor: string | undefined
    do {
      const page: Json = await bench.ok('get-iplists', { max_results: 4, ...(cursor && { cursor }) })
      for (const { name } of page.ip_lists) names.add(name)
      cursor = page.next_cursor
    } while (cursor)
    t.equal(names.size, all.total_count)
  })
})

t.test('create-iplist', async (t) => {
  const bench = await startBench(t)

  await t.test("sends ranges and names in the PCE's form and reads back", async (t) => {
    const answer = await bench.ok('create-iplist', {
      name: 'Branch',
      description: 'x',
      ip_ranges: [
        { from_ip: '10.9.0.0/16' },
        { from_ip: '10.9.1.1', to_ip: '10.9.1.9', exclusion: true, description: 'lab' },
        { from_ip: '2001:db8::/48' },
      ],
      fqdn: '*.example.com',
    })
    partial(t, answer, { name: 'Branch', fqdns: [{ fqdn: '*.example.com' }], update_type: 'create' })
    t.notOk(answer.differences)
    const [write] = bench.writes()
    partial(t, write, {
      method: 'POST',
      path: `/api/v2${DRAFT}/ip_lists`,
      body: { fqdns: [{ fqdn: '*.example.com' }] },
    })
    t.notOk('fqdn' in (write?.body as object), 'the PCE has no such property')
    t.equal(bench.simulator.state.find(answer.href)?.name, 'Branch', 'a name that others contain is free')
  })

  await t.test('reports a taken name, even if taken in the meantime', async (t) => {
    const args = { name: 'Branch', ip_ranges: [{ from_ip: '10.0.0.1' }] }
    const error = await refused(t, bench, 'create-iplist', args, 'already_exists')
    partial(t, error.existing_iplist, { name: 'Branch', href: /ip_lists/ })
    bench.simulator.faults.add({
      kind: 'status',
      path: `${DRAFT}/ip_lists`,
      method: 'POST',
      times: 1,
      status: 406,
      body: [{ token: 'ip_list_name_not_unique', message: 'IP List name must be unique' }],
    })
    const raced = await bench.fails('create-iplist', { ...args, name: 'Branch two' }, 'pce_error')
    t.equal(raced.token, 'ip_list_name_not_unique')
    const blind = { kind: 'status', path: `${DRAFT}/ip_lists`, method: 'GET', times: 1, status: 200, body: [] } as const
    bench.simulator.faults.add(blind)
    partial(t, await bench.fails('create-iplist', args, 'already_exists'), { existing_iplist: { name: 'Branch' } })
  })

  await t.test('refuses every invalid range before any request', async (t) => {
    bench.simulator.clearRequests()
    for (const range of [
      { from_ip: '10.0.0.300' },
      { from_ip: '10.0.0.0/33' },
      { from_ip: '010.0.0.1' },
      { from_ip: '10.0.0.9', to_ip: '10.0.0.1' },
      { from_ip: '10.0.0.1', to_ip: '::1' },
      { from_ip: '10.0.0.0/8', to_ip: '10.0.0.9' },
      { from_ip: '10.0.0.1', to_ip: '10.0.0.0/24' },
    ]) {
      const error = await bench.fails('create-iplist', { name: 'n', ip_ranges: [range] }, 'invalid_argument')
      t.equal(error.argument, 'ip_ranges[0]')
    }
    await bench.fails('create-iplist', { name: 'n', ip_ranges: [] }, 'invalid_argument')
    for (const fqdn of ['not a name', '10.0.0.1', 'a..b', '-x.example']) {
      await bench.fails('create-iplist', { name: 'n', ip_ranges: [], fqdn }, 'invalid_argument')
    }
    const both = { name: 'n', ip_ranges: [], fqdn: 'a.example', fqdns: ['b.example'] }
    await bench.fails('create-iplist', both, 'invalid_argument')
    t.equal(bench.simulator.requests.length, 0)
  })

  await t.test('a dry run shows the body; a PCE error keeps its token', async (t) => {
    const args = { name: 'Names only', ip_ranges: [], fqdns: ['a.example', '*.b.example'] }
    bench.writes()
    partial(t, await bench.ok('create-iplist', { ...args, dry_run: true }), {
      dry_run: true,
      requests: [
        {
          method: 'POST',
          path: `${DRAFT}/ip_lists`,
          body: { name: 'Names only', fqdns: [{ fqdn: 'a.example' }, { fqdn: '*.b.example' }] },
        },
      ],
    })
    t.same(bench.writes(), [])
    await bench.ok('create-iplist', args)
  })
})

t.test('update-iplist and delete-iplist', async (t) => {
  const bench = await startBench(t)
  const href = await hrefOf(bench, 'get-iplists', 'ip_lists', 'Partner: banks')

  await t.test('changes exactly the named list, reports previous values, and reads back', async (t) => {
    bench.writes()
    const answer = await bench.ok('update-iplist', {
      name: 'Partner: banks',
      description: 'reviewed',
      ip_ranges: [{ from_ip: '203.0.113.40' }],
    })
    partial(t, answer, {
      href,
      name: 'Partner: banks',
      description: 'reviewed',
      ip_ranges: [{ from_ip: '203.0.113.40' }],
      fqdns: [{ fqdn: 'settlement.bankhub.example' }],
      updated_fields: ['description', 'ip_ranges'],
      previous: { ip_ranges: [{ from_ip: '203.0.113.32' }] },
      message: /provisioned/,
    })
    partial(t, bench.writes(), [{ method: 'PUT', path: `/api/v2${href}` }])
  })

  await t.test('an active href refers to its draft', async (t) => {
    bench.writes()
    await bench.ok('update-iplist', { href: href.replace('draft', 'active'), fqdn: 'pay.example' })
    partial(t, bench.writes(), [{ path: `/api/v2${href}`, body: { fqdns: [{ fqdn: 'pay.example' }] } }])
  })

  await t.test('exactly one object', async (t) => {
    const change = { description: 'd' }
    const near = await refused(t, bench, 'update-iplist', { name: 'Partner', ...change }, 'not_found')
    t.ok(near.near_names.some((name: string) => name.startsWith('Partner:')))
    await refused(t, bench, 'update-iplist', { ...change }, 'missing_identifier')
    await refused(t, bench, 'update-iplist', { name: 'x', href, ...change }, 'conflicting_identifiers')
    await refused(t, bench, 'update-iplist', { href: `${DRAFT}/services/1`, ...change }, 'invalid_href')
    await refused(t, bench, 'update-iplist', { href: '/orgs/9/sec_policy/draft/ip_lists/1', ...change }, 'invalid_href')
    await refused(t, bench, 'update-iplist', { href: `${DRAFT}/ip_lists/4711`, ...change }, 'not_found')
    await refused(t, bench, 'update-iplist', { href }, 'no_update_fields')
    await refused(t, bench, 'update-iplist', { href, new_name: 'Branch offices' }, 'already_exists')
    await refused(t, bench, 'delete-iplist', { name: 'Partner' }, 'not_found')
    await refused(t, bench, 'delete-iplist', {}, 'missing_identifier')
  })

  await t.test('keeps a list that rules use and names the rule sets', async (t) => {
    const used = await bench.ok('create-ruleset', {
      name: 'uses banks',
      scopes: [['app=payments']],
      rules: [
        { providers: ['ams'], consumers: ['iplist:Partner: logistics'], ingress_services: [{ service: 'HTTPS' }] },
      ],
    })
    const error = await bench.fails('delete-iplist', { name: 'Partner: logistics' }, 'pce_error')
    partial(t, error, { http_status: 406, token: 'ip_list_referenced', hint: /used_by/ })
    partial(
      t,
      error.used_by.find(({ href }: Json) => href === used.ruleset.href),
      { name: 'uses banks', versions: ['draft'] },
    )
  })

  await t.test('a provisioned list is marked for deletion, a new one is gone, the built-in one stays', async (t) => {
    const { href: fresh } = await bench.ok('create-iplist', { name: 'Fresh', ip_ranges: [{ from_ip: '10.1.1.1' }] })
    partial(t, await bench.ok('delete-iplist', { name: 'Fresh' }), { href: fresh, name: 'Fresh', message: /gone/ })
    t.equal(bench.simulator.state.find(fresh), undefined)
    const lone = await hrefOf(bench, 'get-iplists', 'ip_lists', 'Branch offices - guest Wi-Fi')
    const result = await bench.ok('delete-iplist', { href: lone, dry_run: true })
    partial(t, result, { dry_run: true, requests: [{ method: 'DELETE', path: lone }] })
    await bench.fails('delete-iplist', { name: 'Any (0.0.0.0/0 and ::/0)' }, 'pce_error')
  })
})

t.test('get-services', async (t) => {
  const bench = await startBench(t)
  const names = ({ services }: Json) => services.map(({ name }: Json) => name)

  await t.test('filters by part of a name, by port and protocol, even inside a range', async (t) => {
    t.same(names(await bench.ok('get-services', { name: 'S-HTTP' })), ['S-HTTP', 'S-HTTPS'])
    t.ok(names(await bench.ok('get-services', { port: 50_000, proto: 'TCP' })).includes('Active Directory'))
    t.same(names(await bench.ok('get-services', { port: 123, proto: 17 })), ['NTP'])
    await bench.fails('get-services', { proto: 'tpc' }, 'invalid_argument')
    for (const port of [-1, 65_536]) await bench.fails('get-services', { port }, 'invalid_argument')
  })

  await t.test('shows the risk of ransomware that the PCE sees in a service', async (t) => {
    const ransomware = { category: 'admin', severity: 'high', os_platforms: ['windows'] }
    const risky = { name: 'risky', service_ports: [{ port: 3390, proto: 6 }], risk_details: { ransomware } }
    await bench.pce.services.create(risky as Json)
    t.same((await bench.ok('get-services', { name: 'risky' })).services[0].ransomware, ransomware)
    t.notOk('ransomware' in (await bench.ok('get-services', { name: 'S-HTTPS' })).services[0])
  })

  await t.test('finds port 0, for which the PCE cannot be asked, alone and in a range', async (t) => {
    const ports = (service_ports: object[]) => ({ service_ports }) as Json
    await bench.pce.services.create({ name: 'zero', ...ports([{ port: 0, proto: 6 }]) })
    await bench.pce.services.create({ name: 'from zero', ...ports([{ port: 0, to_port: 1023, proto: 17 }]) })
    const all = await bench.pce.services.getAll()
    bench.simulator.clearRequests()
    const found = await bench.ok('get-services', { port: 0 })
    t.same(names(found), ['zero', 'from zero'], 'not All Services, whose port is -1')
    partial(t, found, { total_count: 2, pce_total: all.length, truncated: false })
    t.same(names(await bench.ok('get-services', { port: 0, proto: 'udp' })), ['from zero'])
    t.notOk(bench.simulator.requests.some(({ query }) => 'port' in query))
  })

  await t.test('searches programs across everything, ignoring case and pages', async (t) => {
    const found = await bench.ok('get-services', { egress_process_name: 'SVCHOST', max_results: 1 })
    t.same(names(found), ['Windows Update client'])
    partial(t, found, { total_count: 1, truncated: false })
    t.same(names(await bench.ok('get-services', { process_name: 'w3wp', max_results: 1 })), ['IIS worker'])
    t.same(
      names(await bench.ok('get-services', { process_name: 'svchost' })),
      [],
      'a connecting program is no listener',
    )
  })

  await t.test('shows only the list that it has', async (t) => {
    const { services } = await bench.ok('get-services', { name: 'RDP' })
    partial(t, services[0].service_ports, [
      { port: 3389, proto: 6 },
      { port: 3389, proto: 17 },
    ])
    t.notOk('windows_services' in services[0])
  })
})

t.test('create-service', async (t) => {
  const bench = await startBench(t)

  await t.test('converts protocol names to numbers, drops port -1, and reads back', async (t) => {
    const ports = [
      { port: 8000, to_port: 8099, proto: 'tcp' },
      { port: -1, proto: 'udp' },
      { proto: 'icmp', icmp_type: 8, icmp_code: 0 },
    ]
    const answer = await bench.ok('create-service', { name: 'Ordering', service_ports: ports })
    partial(t, bench.writes(), [
      {
        path: `/api/v2${DRAFT}/services`,
        body: {
          service_ports: [
            { port: 8000, to_port: 8099, proto: 6 },
            { proto: 17 },
            { proto: 1, icmp_type: 8, icmp_code: 0 },
          ],
        },
      },
    ])
    partial(t, answer.service, { name: 'Ordering', update_type: 'create' })
    t.notOk(answer.differences)
  })

  await t.test('passes a connecting program byte for byte, with a note for other systems', async (t) => {
    const program = 'C:\\Program Files\\Updater\\up date.exe'
    const entry = { process_name: program }
    const answer = await bench.ok('create-service', { name: 'Updater', windows_egress_services: [entry] })
    partial(t, answer, { note: /Windows/, service: { windows_egress_services: [entry] } })
    partial(t, bench.writes(), [{ body: { windows_egress_services: [{ process_name: program }] } }])
  })

  await t.test('refuses invalid services with the entry and the reason', async (t) => {
    const invalid = async (args: object, argument: string) => {
      const error = await refused(t, bench, 'create-service', { name: 'n', ...args }, 'invalid_service_definition')
      t.equal(error.argument, argument)
    }
    await invalid({ service_ports: [{ port: 1, proto: 'tpc' }] }, 'service_ports[0]')
    await invalid(
      {
        service_ports: [
          { port: 1, proto: 6 },
          { port: 70_000, proto: 6 },
        ],
      },
      'service_ports[1]',
    )
    await invalid({ service_ports: [{ port: 9, to_port: 8, proto: 6 }] }, 'service_ports[0]')
    await invalid({ service_ports: [{ port: 9, proto: 1 }] }, 'service_ports[0]')
    await invalid({ service_ports: [{ proto: 6, icmp_type: 8 }] }, 'service_ports[0]')
    await invalid({ service_ports: [{ port: 9, proto: 6, process_name: 'x' }] }, 'service_ports[0]')
    await invalid({ windows_services: [{}] }, 'windows_services[0]')
    await invalid({ windows_services: [{ port: 80 }] }, 'windows_services[0]')
    await invalid({ windows_egress_services: [{ process_name: 'x', port: 80 }] }, 'windows_egress_services[0]')
    await invalid({ windows_egress_services: [{ service_name: '' }] }, 'windows_egress_services[0]')
    await refused(t, bench, 'create-service', { name: 'n' }, 'empty_service')
    await refused(t, bench, 'create-service', { name: 'n', service_ports: [] }, 'empty_service')
    const two = { service_ports: [{ port: 1, proto: 6 }], windows_services: [{ process_name: 'x' }] }
    const error = await refused(t, bench, 'create-service', { name: 'n', ...two }, 'conflicting_service_definition')
    t.same(error.supplied, ['service_ports', 'windows_services'])
    partial(t, error.guidance, { windows_egress_services: /connects/ })
    const taken = { name: 'HTTP', service_ports: [{ port: 1, proto: 6 }] }
    partial(t, await refused(t, bench, 'create-service', taken, 'already_exists'), {
      existing_service: { name: 'HTTP' },
    })
  })

  await t.test('reports a list that the PCE drops', async (t) => {
    bench.simulator.faults.add({
      kind: 'status',
      path: /\/services\/\d+$/,
      method: 'GET',
      times: 1,
      status: 200,
      body: { href: `${DRAFT}/services/1`, name: 'Dropped', service_ports: null },
    })
    const answer = await bench.ok('create-service', { name: 'Dropped', service_ports: [{ port: 1, proto: 6 }] })
    partial(t, answer, { discarded_fields: ['service_ports'], differences: [{ field: 'service_ports', stored: null }] })
  })
})

t.test('update-service and delete-service', async (t) => {
  const bench = await startBench(t)

  await t.test('replaces its list', async (t) => {
    bench.writes()
    const answer = await bench.ok('update-service', {
      name: 'S-HTTP',
      new_name: 'Web intern',
      service_ports: [{ port: 8081, proto: 'tcp' }],
    })
    partial(t, answer, {
      updated_fields: ['name', 'service_ports'],
      previous: { name: 'S-HTTP', service_ports: [{ port: 8080 }] },
      service: { name: 'Web intern', service_ports: [{ port: 8081, proto: 6 }], update_type: 'update' },
    })
    t.equal(bench.writes().length, 1)
    partial(t, await bench.ok('get-services', { name: 'S-HTTPS' }), { total_count: 1 }, 'its namesake is untouched')
  })

  await t.test('refuses another kind, another object, or nothing', async (t) => {
    const windows = { windows_services: [{ process_name: 'x' }] }
    const error = await refused(
      t,
      bench,
      'update-service',
      { name: 'SSH', ...windows },
      'conflicting_service_definition',
    )
    t.equal(error.current, 'service_ports')
    await refused(t, bench, 'update-service', { name: 'SSH' }, 'no_update_fields')
    await refused(t, bench, 'update-service', { name: 'SS', description: 'd' }, 'not_found')
    await refused(t, bench, 'update-service', { name: 'SSH', new_name: 'RDP' }, 'already_exists')
    await refused(t, bench, 'update-service', { name: 'SSH', service_ports: [] }, 'empty_service')
    await refused(t, bench, 'delete-service', { name: 'HTT' }, 'not_found')
  })

  await t.test('two services with one name give candidates', async (t) => {
    const body = { name: 'Twin', service_ports: [{ port: 1, proto: 6 }] }
    const first = await bench.pce.services.create(body)
    const second = await bench.pce.services.create(body)
    const error = await refused(t, bench, 'delete-service', { name: 'Twin' }, 'ambiguous_name')
    t.same(
      error.candidates.map(({ href }: Json) => href),
      [first.href, second.href],
    )
    partial(t, await bench.ok('delete-service', { href: second.href }), { href: second.href, name: 'Twin' })
  })

  await t.test('distinguishes a repeated deletion; updating an object marked for deletion warns', async (t) => {
    const retired = await bench.pce.services.create({ name: 'Retired', service_ports: [{ port: 1, proto: 6 }] })
    await bench.pce.provisionPolicyChanges('for a while', [retired.href])
    partial(t, await bench.ok('delete-service', { name: 'Retired' }), {
      message: /until the deletion is provisioned/,
    })
    bench.writes()
    partial(t, await bench.ok('delete-service', { name: 'Retired' }), { message: /already pending/ })
    t.same(bench.writes(), [])
    partial(t, await bench.ok('update-service', { name: 'Retired', description: 'old' }), {
      warnings: [/still pending/],
    })
  })

  await t.test('a change that cannot be read back is still reported', async (t) => {
    bench.simulator.faults.add({ kind: 'status', path: /\/services\/\d+$/, method: 'GET', times: 1, status: 403 })
    const answer = await bench.ok('update-service', { name: 'NTP', description: 'time' })
    partial(t, answer, { updated_fields: ['description'], warnings: [/read back/] })
  })
})
