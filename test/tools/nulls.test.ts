/** Null for an optional argument counts as left out (D242): agents send it for what they do not use. */
import t from 'tap'
import { leaveOutNulls } from '../../plugins/dispatcher/leave-out-nulls.js'
import { tools } from '../../tools/index.js'
import { startBench, type Json } from './harness.js'

t.test('null for an optional argument', async (t) => {
  const bench = await startBench(t, { workloads: 60, flows: 0 })

  await t.test('counts as left out, at every depth and under every name', async (t) => {
    const same = async (tool: string, own: object, other: object) =>
      t.same(await bench.ok(tool, other), await bench.ok(tool, own), `${tool} ${JSON.stringify(other)}`)
    await same('get-labels', { key: 'env' }, { key: 'env', value: null, exact: null, max_results: null, cursor: null })
    await same('get-workload-enforcement-status', {}, { app: null, env_name: null })
    await same(
      'get-rulesets',
      { service: { port: 443, proto: 'tcp' } },
      {
        service: { port: 443, proto: 'tcp', to_port: null, service: null, href: null },
        actor: null,
      },
    )
    await same(
      'create-ruleset',
      {
        name: 'Nothing',
        scopes: [[{ key: 'app', value: 'payments' }, 'env=prod']],
        rules: [{ providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 443, proto: 'tcp' }] }],
        dry_run: true,
      },
      {
        name: 'Nothing',
        description: null,
        scopes: [[{ key: 'app', value: 'payments', href: null }, 'env=prod']],
        rules: [
          {
            providers: ['ams'],
            consumers: ['ams'],
            ingress_services: [{ port: 443, protocol: 'tcp', to_port: null, href: null, service: null }],
            egress_services: null,
            rule_type: null,
            unscoped_consumers: null,
          },
        ],
        dry_run: true,
      },
    )
  })

  await t.test('is refused where nothing could be left out', async (t) => {
    const problems = async (tool: string, args: object) =>
      (await bench.fails(tool, args, 'invalid_argument')).problems.map(({ path, message }: Json) => [path, message])
    t.same(await problems('create-label', { key: 'app', value: null }), [['/value', 'expected string, got null']])
    t.same(await problems('get-labels', { fields: [null] }), [['/fields/0', 'expected string, got null']])
    t.same(
      (await problems('get-labels', { colour: null })).map(([path]: string[]) => path),
      ['/colour'],
      'an unknown name',
    )
    const odd = { service: { port: 443, proto: 'tcp', colour: null } }
    t.match(
      (await bench.fails('get-rulesets', odd, 'invalid_argument')).message,
      /"colour" is not a field of a service/,
    )
  })

  await t.test('changes nothing that it stands for', async (t) => {
    const { href } = await bench.ok('create-iplist', {
      name: 'Kept',
      description: 'Old',
      ip_ranges: [{ from_ip: '192.0.2.1' }],
    })
    await bench.ok('update-iplist', { href, new_name: 'Kept too', description: null, ip_ranges: null })
    const [iplist] = (await bench.ok('get-iplists', { name: 'Kept too' })).ip_lists as Json[]
    t.same([iplist.name, iplist.description, iplist.ip_ranges.length], ['Kept too', 'Old', 1])
  })

  await t.test('of every tool', async (t) => {
    for (const { name, input, example } of tools) {
      const nulls = Object.fromEntries(Object.keys(input.properties).map((argument) => [argument, null]))
      const required = Object.fromEntries((input.required ?? []).map((argument) => [argument, null]))
      t.same(leaveOutNulls({ ...nulls, ...example }, input), { ...required, ...example }, name)
    }
  })
})
