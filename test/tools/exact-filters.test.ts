/** `exact: true` on every list tool that finds parts: whole values only, in this case, over all objects and pages. */
import t from 'tap'
import { tools } from '../../tools/index.js'
import { CONTRACT, namesTaking } from '../surface/contract.js'
import { startBench, type Json } from './harness.js'

t.test('every list tool with a filter that finds parts takes it, and no other', async (t) => {
  const findsParts = ({ name, input }: (typeof tools)[number]) =>
    /^(?:get|find)-/.test(name) &&
    Object.values<{ description?: string }>(input.properties).some(({ description = '' }) =>
      /^Contains\b/.test(description),
    )
  const known = tools.filter(({ name }) => name in CONTRACT)
  t.same(
    known.filter(findsParts).map(({ name }) => name),
    namesTaking('exact'),
  )
})

t.test('exact: true', async (t) => {
  const bench = await startBench(t, { workloads: 60, flows: 0 })
  const { pce } = bench
  const ranges = (ip: string) => ({ ip_ranges: [{ from_ip: ip }], fqdns: [{ fqdn: `${ip}.example.com` }] })
  for (const name of ['Zone', 'Zone A', 'zone']) {
    await pce.ipLists.create({ name, description: `${name}!`, ...ranges(name === 'Zone' ? '10.77.0.1' : '10.77.0.10') })
    await pce.ruleSets.create({ name, description: `${name}!`, scopes: [[]] })
    await pce.pairingProfiles.create({ name, enabled: true })
    await pce.labelGroups.create({ name, key: 'env', description: `${name}!` })
    await pce.workloads.create({
      name: `host ${name}`,
      hostname: `host-${name}`,
      description: `${name}!`,
      interfaces: [{ name: 'eth0', address: name === 'Zone' ? '2001:db8::1' : `10.77.1.${name.length}${name.length}` }],
    })
  }
  for (const name of ['Zone', 'Zone A'])
    await pce.services.create({
      name,
      description: `${name}!`,
      windows_services: [{ process_name: `C:\\${name}\\run.exe`, service_name: 'x' }],
    })
  await pce.services.create({ name: 'Out', windows_egress_services: [{ process_name: 'C:\\Zone\\out.exe' }] })
  for (const value of ['zone', 'zone-a']) await pce.labels.create({ key: 'app', value })
  const clusters: Json[] = await pce.containerClusters.getAll()
  const kubernetes: Json[] = await pce.kubernetesWorkloads.getAll()
  const namespace: string = kubernetes[0].namespace
  const [{ hostname }]: Json[] = await pce.vens.get()

  for (const [tool, filter, part, whole, count] of [
    ['get-iplists', 'name', 'Zon', 'Zone', 1],
    ['get-iplists', 'description', 'Zone', 'Zone!', 1],
    ['get-iplists', 'fqdn', 'example.com', '10.77.0.10.example.com', 2],
    ['get-iplists', 'ip_address', '10.77.0', '10.77.0.1', 1],
    ['get-label-groups', 'name', 'Zon', 'Zone', 1],
    ['get-label-groups', 'description', 'Zone', 'Zone!', 1],
    ['get-rulesets', 'name', 'Zon', 'Zone', 1],
    ['get-rulesets', 'description', 'Zone', 'Zone!', 1],
    ['get-pairing-profiles', 'name', 'Zon', 'Zone', 1],
    ['get-workloads', 'name', 'host Z', 'host Zone', 1],
    ['get-workloads', 'hostname', 'host-Z', 'host-Zone', 1],
    ['get-workloads', 'description', 'Zone', 'Zone!', 1],
    ['get-workloads', 'ip_address', '10.77.1.', '10.77.1.44', 1],
    ['get-workloads', 'ip_address', '2001:db8', '2001:0DB8:0::1', 1],
    ['find-unlabelled-workloads', 'hostname', 'host-Z', 'host-Zone', 1],
    ['find-unlabelled-workloads', 'ip_address', '2001:db8', '2001:0DB8:0::1', 1],
    ['get-vens', 'hostname', hostname.slice(1), hostname, 1],
    ['get-services', 'name', 'Zon', 'Zone', 1],
    ['get-services', 'description', 'Zone', 'Zone!', 1],
    ['get-services', 'process_name', 'run.exe', 'C:\\Zone\\run.exe', 1],
    ['get-services', 'egress_process_name', 'out.exe', 'C:\\Zone\\out.exe', 1],
    ['get-labels', 'value', 'zon', 'zone', 1],
    ['get-container-clusters', 'name', clusters[0].name.slice(1), clusters[0].name, 1],
    [
      'get-kubernetes-workloads',
      'namespace',
      namespace.slice(1),
      namespace,
      kubernetes.filter((one) => one.namespace === namespace).length,
    ],
  ] as const) {
    const detail = tool === 'get-workloads' ? { detail_level: 'full' } : {}
    const found = async (value: string, exact: boolean): Promise<number> => {
      const answer = await bench.ok(tool, { ...detail, [filter]: value, exact })
      const shown = (answer[CONTRACT[tool]!.rows!.in] ?? []).length
      t.equal(answer.total_count ?? answer.total, shown, `${tool} ${filter} counts what it shows`)
      return shown
    }
    t.ok((await found(part, false)) >= count, `${tool} ${filter} finds ${part} as a part`)
    t.equal(await found(part, true), 0, `${tool} ${filter} is not ${part}`)
    t.equal(await found(whole, true), count, `${tool} ${filter} is ${whole}`)
    if (filter !== 'ip_address' && whole !== whole.toUpperCase())
      t.equal(await found(whole.toUpperCase(), true), 0, `${tool} ${filter}: another case is another name`)
  }

  await t.test('does not change what other filters mean, and belongs to the cursor', async (t) => {
    const all = await bench.ok('get-labels', { key: 'app' })
    t.equal((await bench.ok('get-labels', { key: 'app', exact: true })).total_count, all.total_count)
    const page = await bench.ok('get-labels', { value: 'zon', max_results: 1 })
    await bench.fails('get-labels', { value: 'zon', cursor: page.next_cursor, exact: true }, 'invalid_argument')
    const sent = bench.simulator.requests.filter(({ query }) => 'exact' in query)
    t.same(sent, [], 'the PCE is not asked for it')
  })
})
