/** `svc-mcp policy` as a person and a pipeline run it: export, diff and apply, against simulated PCEs. */
import { spawn } from 'node:child_process'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t from 'tap'
import { generateEstate } from '../../pce-simulator/estate/generate.js'
import { createPceSimulator, type PceSimulator, type PceSimulatorOptions } from '../../pce-simulator/index.js'
import { bundleProgram } from '../bundle-program.js'
import { createCaller } from '../pce-simulator/call-pce.js'

const PROGRAM = bundleProgram('stdio')
const ESTATE = { seed: 7, workloads: 120, flows: 3000, orgId: 1 }

const folder = () => mkdtempSync(join(tmpdir(), 'policy-'))

async function start(t: { teardown(end: () => Promise<void>): unknown }, options: PceSimulatorOptions = {}) {
  const simulator = await createPceSimulator({ estate: generateEstate(ESTATE), ...options })
  await simulator.listen({ port: 0 })
  t.teardown(() => simulator.close())
  const call = createCaller(simulator)
  const org = async (method: string, path: string, json?: unknown) => {
    const answer = await call(method, path.startsWith('/orgs/') ? path : `/orgs/1${path}`, json)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.body as never
  }
  return { simulator, org }
}

/** A PCE with the same labels and workloads, and no policy but what every PCE has. */
const startEmpty = (t: { teardown(end: () => Promise<void>): unknown }) =>
  start(t, { estate: { ...generateEstate(ESTATE), ipLists: [], services: [], ruleSets: [] } })

async function policy(simulator: PceSimulator, args: readonly string[], { cwd = folder(), env = {} as object } = {}) {
  const { hostname, port } = new URL(simulator.url)
  const pce = {
    PCE_HOST: `http://${hostname}`,
    PCE_PORT: port,
    PCE_ORG_ID: '1',
    API_KEY: simulator.credentials.key,
    API_SECRET: simulator.credentials.secret,
  }
  const child = spawn(process.execPath, [PROGRAM, 'policy', ...args], {
    cwd,
    env: { PATH: process.env.PATH, ...pce, ...env },
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, out: stdout.split('\n').slice(0, -1), err: stderr.split('\n').slice(0, -1) }
}

/** All files of a folder with their texts. */
function textsIn(path: string): Record<string, string> {
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((one) => /\.ya?ml$/.test(one))
  return Object.fromEntries(files.sort().map((one) => [one, readFileSync(join(path, one), 'utf8')]))
}

function write(path: string, files: Record<string, string>): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), text)
  }
  return path
}

const writesOf = (simulator: PceSimulator) =>
  simulator.requests.filter(({ method }) => method !== 'GET').map(({ method, path }) => `${method} ${path}`)

/** Adds what the estate has none of: nested label groups, deny rules, exclusions, ends of every kind, flags, odd names. */
async function enrich(org: Awaited<ReturnType<typeof start>>['org']) {
  const labels: { href: string; key: string; value: string }[] = await org('GET', '/labels')
  const label = (key: string, value: string) => ({
    href: labels.find((one) => one.key === key && one.value === value)!.href,
  })
  const [workload]: { href: string }[] = await org('GET', '/workloads?max_results=1')
  const services: { href: string; name: string }[] = await org('GET', '/sec_policy/draft/services')
  const lists: { href: string; name: string }[] = await org('GET', '/sec_policy/draft/ip_lists')
  const service = (name: string) => ({ href: services.find((one) => one.name === name)!.href })
  const list = (name: string) => ({ href: lists.find((one) => one.name === name)!.href })
  const inner: { href: string } = await org('POST', '/sec_policy/draft/label_groups', {
    name: 'Not production',
    key: 'env',
    labels: [label('env', 'dev'), label('env', 'test')],
  })
  const outer: { href: string } = await org('POST', '/sec_policy/draft/label_groups', {
    name: 'All stages',
    key: 'env',
    description: 'yes',
    labels: [label('env', 'prod')],
    sub_groups: [{ href: inner.href }],
  })
  const odd: { href: string } = await org('POST', '/sec_policy/draft/ip_lists', {
    name: 'Büro/Halle 3: "café" 日本',
    description: 'two\nlines, and # no comment',
    ip_ranges: [{ from_ip: '10.9.0.0/16', description: 'on: off' }, { from_ip: '2001:db8::/32' }],
    fqdns: [{ fqdn: '*.example.com' }],
    external_data_set: 'cmdb',
    external_data_reference: 'list-1',
  })
  for (const name of ['case', 'CASE', '0123', 'true'])
    await org('POST', '/sec_policy/draft/services', {
      name,
      service_ports: [{ port: 7000, to_port: 7010, proto: 6 }, { proto: 47 }],
    })
  const set: { href: string } = await org('POST', '/sec_policy/draft/rule_sets', {
    name: 'Everything there is',
    description: 'for the round trip',
    scopes: [[{ label_group: { href: outer.href } }, { label: label('app', 'crm'), exclusion: true }], []],
  })
  const rule = {
    enabled: true,
    providers: [{ actors: 'ams' }],
    consumers: [{ workload: { href: workload!.href } }, { ip_list: { href: odd.href } }],
    ingress_services: [service('HTTPS'), { port: 8443, proto: 6 }, { port: 9000, to_port: 9010, proto: 17 }],
    resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    unscoped_consumers: true,
  }
  const { resolve_labels_as: _allowOnly, ...deny } = rule
  await org('POST', `${set.href}/sec_rules`, { ...rule, description: 'all ends', stateless: true, network_type: 'all' })
  await org('POST', `${set.href}/sec_rules`, {
    ...rule,
    enabled: false,
    consumers: [{ label: label('role', 'web') }, { label_group: { href: inner.href }, exclusion: true }],
    resolve_labels_as: { providers: ['workloads'], consumers: ['workloads', 'virtual_services'] },
  })
  await org('POST', `${set.href}/deny_rules`, {
    ...deny,
    consumers: [{ ip_list: list('Internet') }],
    ingress_services: [service('RDP')],
  })
  await org('POST', `${set.href}/deny_rules`, {
    ...deny,
    consumers: [{ label: label('env', 'dev') }],
    ingress_services: [service('SSH')],
    override: true,
  })
}

async function provision(org: Awaited<ReturnType<typeof start>>['org']) {
  const pending: Record<string, { href: string }[]> = await org('GET', '/sec_policy/pending')
  const subset = Object.fromEntries(
    Object.entries(pending).map(([type, changes]) => [type, changes.map(({ href }) => ({ href }))]),
  )
  await org('POST', '/sec_policy', { update_description: 'test', change_subset: subset })
}

/** What the policy says of every flow of the estate. */
async function decisions(org: Awaited<ReturnType<typeof start>>['org']): Promise<string[]> {
  const side = { include: [[]], exclude: [] }
  const rows: Record<string, Record<string, unknown>>[] = await org('POST', '/traffic_flows/traffic_analysis_queries', {
    start_date: '2026-08-01T00:00:00Z',
    end_date: '2026-10-30T00:00:00Z',
    sources: side,
    destinations: side,
    services: { include: [], exclude: [] },
    policy_decisions: [],
    max_results: 100_000,
  })
  return rows
    .map(({ src, dst, service, policy_decision: decision, flow_direction: direction }) =>
      JSON.stringify([src!.ip, dst!.ip, service, direction, decision]),
    )
    .sort()
}

t.test('exported and applied again, nothing changes, and the files stay as they are', async (t) => {
  const { simulator, org } = await start(t)
  await enrich(org)
  const cwd = folder()
  const exported = await policy(simulator, ['export', 'there'], { cwd })
  t.same([exported.code, exported.err], [0, []])
  const before = textsIn(join(cwd, 'there'))
  simulator.clearRequests()
  const same = await policy(simulator, ['diff', 'there'], { cwd })
  t.same(same, { code: 0, out: ['Only in the files: 0, different: 0, without a file: 0, the same: 62.'], err: [] })
  const applied = await policy(simulator, ['apply', '--prune', 'there'], { cwd })
  t.same(applied, { code: 0, out: ['Written: 0 objects; 62 were as the files say. Nothing was provisioned.'], err: [] })
  t.same(writesOf(simulator), [], 'and nothing was written')
  const again = await policy(simulator, ['export', '--force', 'there'], { cwd })
  t.match(again.out[0], /Files written: 0, removed: 0\.$/)
  t.same(textsIn(join(cwd, 'there')), before)
})

t.test('applied to an empty PCE and provisioned, the policy decides every flow as before', async (t) => {
  const [one, other] = [await start(t), await startEmpty(t)]
  await enrich(one.org)
  await provision(one.org)
  const cwd = folder()
  await policy(one.simulator, ['export', 'there'], { cwd })
  const [wanted, without] = [await decisions(one.org), await decisions(other.org)]
  t.equal(wanted.length, without.length)
  t.ok(wanted.filter((row, at) => row !== without[at]).length > wanted.length / 10, 'which the policy decides indeed')
  const applied = await policy(other.simulator, ['apply', 'there'], { cwd })
  t.same([applied.code, applied.err], [0, []])
  t.same(applied.out.slice(-2), [
    'Written: 62 objects; 0 were as the files say. Nothing was provisioned.',
    'Read back, the draft is what the files say.',
  ])
  t.notOk(writesOf(other.simulator).includes('POST /orgs/1/sec_policy'))
  t.same(await decisions(other.org), without, 'and before it is provisioned, nothing is different')
  await provision(other.org)
  t.same(await decisions(other.org), wanted)
  const back = await policy(other.simulator, ['export', '--from', 'active', 'back'], { cwd })
  t.equal(back.code, 0)
  t.same(textsIn(join(cwd, 'back')), textsIn(join(cwd, 'there')), 'the files of both are the same')
})

t.test('diff says field by field what differs, from the draft and from what is active', async (t) => {
  const { simulator } = await start(t)
  const cwd = folder()
  await policy(simulator, ['export', 'there'], { cwd })
  const at = (path: string) => join(cwd, 'there', path)
  const change = (path: string, from: string, to: string) =>
    writeFileSync(at(path), readFileSync(at(path), 'utf8').replace(from, to))
  change('ip-lists/branch-offices.yaml', '10.60.0.0/16', '10.61.0.0/16')
  change('ip-lists/branch-offices.yaml', 'Sites without servers', 'Sites')
  change('rule-sets/crm-prod.yaml', '      - HTTPS', '      - HTTPS\n      - { port: 8443, proto: tcp }')
  rmSync(at('services/telnet.yaml'))
  write(cwd, { 'there/new.yml': 'kind: service\nname: New\nservice_ports: [{ port: 1, proto: tcp }]\n' })
  const expected = [
    '--- the draft policy',
    '+++ there',
    '+ service "New" (new.yml)  [neutral]',
    '    service_ports: + {"port":1,"proto":"tcp"}',
    '- service "Telnet" (no file)',
    '~ IP list "Branch offices" (ip-lists/branch-offices.yaml)  [Mixed: it permits some traffic that is not permitted today, and stops some that is]',
    '    description: "Sites without servers" -> "Sites"',
    '    ip_ranges: - "10.60.0.0/16"',
    '    ip_ranges: + "10.61.0.0/16"',
    '~ rule set "crm | prod" (rule-sets/crm-prod.yaml)  [widening]',
    '    rules: ~ {"consumers":["role=endpoint"],"providers":["role=web"],"ingress_services":["HTTPS"],"unscoped_consumers":true}',
    '        ingress_services: + {"port":8443,"proto":"tcp"}',
    'Only in the files: 1, different: 2, without a file: 1, the same: 51.',
  ]
  const draft = await policy(simulator, ['diff', 'there'], { cwd })
  t.same(draft, { code: 1, out: expected, err: [] })
  const partly = await policy(simulator, ['diff', '--only-files', 'there'], { cwd })
  t.same(
    partly.out.filter((line) => line.startsWith('- ')),
    [],
  )
  const applied = await policy(simulator, ['apply', 'there'], { cwd })
  t.equal(applied.code, 0)
  const now = await policy(simulator, ['diff', '--only-files', 'there'], { cwd })
  t.same([now.code, now.out.length], [0, 1])
  const active = await policy(simulator, ['diff', '--against', 'active', 'there'], { cwd })
  t.same(active, { code: 1, out: ['--- the active policy', ...expected.slice(1)], err: [] })
})

t.test('everything wrong in the files is named with its file and line, before the first write', async (t) => {
  const { simulator, org } = await start(t)
  await org('POST', '/sec_policy/draft/services', { name: 'Twice', service_ports: [{ port: 1, proto: 6 }] })
  await org('POST', '/sec_policy/draft/services', { name: 'Twice', service_ports: [{ port: 2, proto: 6 }] })
  const gone: { href: string } = await org('POST', '/sec_policy/draft/services', {
    name: 'Leaving',
    service_ports: [{ port: 3, proto: 6 }],
  })
  await provision(org)
  await org('DELETE', gone.href)
  let sets = 0
  const rules = (text: string) => `kind: rule_set\nname: R${sets++}\nscopes: [[app=crm]]\nrules:\n${text}`
  const rule = (more: string) => `  - consumers: [ams]\n    providers: [ams]\n    ${more}\n`
  /** What is wrong is found in three steps, each of which names all of its faults: in the YAML, in each file, beside the policy. */
  const steps: [files: Record<string, string>, faults: string[]][][] = [
    [
      [
        { 'a.yaml': 'kind: service\nname: [' },
        ['a.yaml:2: Flow sequence in block collection must be sufficiently indented and end with a ]'],
      ],
    ],
    [
      [
        { 'a.yaml': 'name: X' },
        [
          'a.yaml:1: kind must be one of service, ip_list, label_group, rule_set. A folder of policy has no other YAML files.',
        ],
      ],
      [
        { 'a.yaml': 'kind: ip_list\nname: 12\n' },
        ['a.yaml:2: name: name must be a text that is not empty and no href. Put it into quotation marks.'],
      ],
      [
        { 'a.yaml': 'kind: rule_set\nscopes: [[]]\n' },
        ['a.yaml:1: name must be a text that is not empty and no href.'],
      ],
      [
        {
          'a.yaml': 'kind: ip_list\nname: X\nfqdns: [a.example]\n',
          'b.yaml': 'kind: ip_list\n\nname: X\nfqdns: [b.example]\n',
        },
        ['b.yaml:3: name: the IP list "X" is in a.yaml:2, too.'],
      ],
      [
        { 'a.yaml': 'kind: service\nname: All Services\n' },
        ['a.yaml:2: name: "All Services" is built in: every PCE has it, and it has no file.'],
      ],
      [
        { 'a.yaml': 'kind: service\nname: Twice\nservice_ports: [{ proto: gre }]\n' },
        ['a.yaml:2: name: the service "Twice" of the draft cannot have a file: another one has the same name.'],
      ],
      [
        { 'a.yaml': 'kind: ip_list\nname: Y\nip_ranges:\n  - 10.0.0.0/33\ncolour: red\n' },
        [
          'a.yaml:5: colour: there is no field "colour" here: description, ip_ranges, fqdns, external_data_set, external_data_reference.',
        ],
      ],
      [
        { 'a.yaml': rules(rule('ingress_services: [HTTSP]')) },
        ['a.yaml:7: rules[0].ingress_services[0]: No service is named exactly "HTTSP". Did you mean "HTTP"?'],
      ],
      [
        { 'a.yaml': rules(rule('ingress_services: [Twice]')) },
        ['a.yaml:7: rules[0].ingress_services[0]: 2 services are named "Twice": write the href of one, or rename one.'],
      ],
      [
        {
          'a.yaml': rules(
            '  - consumers: [app=crn]\n    providers: [workload:none, "iplist:"]\n    ingress_services: [HTTPS]\n',
          ),
        },
        [
          'a.yaml:5: rules[0].consumers[0]: No label is exactly "app=crn". Did you mean "app=crm"? Labels have no files: create it first.',
          'a.yaml:6: rules[0].providers[0]: No workload is named exactly "none".',
          'a.yaml:6: rules[0].providers[1]: No IP list is named exactly "".',
        ],
      ],
    ],
    [
      [
        { 'a.yaml': 'kind: service\nname: Leaving\nservice_ports: [{ proto: gre }]\n' },
        [
          'a.yaml:2: the deletion of the service "Leaving" is pending, which keeps its name taken. Discard or provision it first.',
        ],
      ],
      [
        { 'a.yaml': 'kind: ip_list\nname: X\nip_ranges:\n  - 10.0.0.0/33\n' },
        ['a.yaml:4: ip_ranges[0]: "10.0.0.0/33" is neither an address nor a CIDR.'],
      ],
      [
        { 'a.yaml': rules(rule('ingress_services: [Windows Update client]')) },
        [
          'a.yaml:7: The rule puts "Windows Update client" into ingress_services, but it matches the process that opens a connection.',
        ],
      ],
      [
        { 'a.yaml': rules('  - consumers: []\n    providers: [ams]\n    ingress_services: [HTTPS]\n') },
        ['a.yaml:5: consumers is empty: ams is all workloads.'],
      ],
      [
        { 'a.yaml': rules(rule('ingress_services: [HTTPS]\n    description: "[expires: 30.06.2030]"')) },
        ['a.yaml:8: The end in the description cannot be read: "[expires: 30.06.2030]" is not [expires: YYYY-MM-DD].'],
      ],
      [
        {
          'a.yaml': 'kind: label_group\nname: A\nkey: env\nsub_groups: [B]\n',
          'b.yaml': 'kind: label_group\nname: B\nkey: env\nsub_groups: [A]\n',
        },
        ['a.yaml:4: the group would contain itself.', 'b.yaml:4: the group would contain itself.'],
      ],
    ],
  ]
  simulator.clearRequests()
  for (const step of steps) {
    const cwd = folder()
    // The files of each case are in a folder of their own.
    const expected = step.flatMap(([files, faults], at) => {
      const own = (name: string) => `case-${at}/${name}`
      write(cwd, Object.fromEntries(Object.entries(files).map(([name, text]) => [`there/${own(name)}`, text])))
      return faults.map((fault) => own(fault).replace(' is in a.yaml', ` is in ${own('a.yaml')}`))
    })
    const { code, out, err } = await policy(simulator, ['apply', 'there'], { cwd })
    t.same([code, out, err.slice(0, -1).sort()], [2, [], expected.sort()])
    const count = `${expected.length} ${expected.length === 1 ? 'fault' : 'faults'}`
    t.match(
      err.at(-1),
      new RegExp(`^svc-mcp policy: ${count} in the files\\. Nothing was (?:compared or )?written\\.$`),
    )
  }
  const nothing = await policy(simulator, ['apply', '--prune', 'there'], {
    cwd: write(folder(), { 'there/a.txt': '' }),
  })
  t.same(nothing, {
    code: 2,
    out: [],
    err: ['svc-mcp policy: there are no YAML files in there. Nothing was compared or written.'],
  })
  t.same(writesOf(simulator), [])
})

t.test('a PCE that fails in the middle: what exists is said, and the same command completes it', async (t) => {
  const one = await start(t)
  await enrich(one.org)
  const cwd = folder()
  await policy(one.simulator, ['export', 'there'], { cwd })
  for (const [kind, skip, path] of [
    ['commit-then-drop', 6, '/orgs/1/sec_policy/draft/rule_sets'],
    ['commit-then-drop', 1, '/orgs/1/sec_policy/draft/label_groups'],
    ['status', 0, /\/deny_rules$/],
  ] as const) {
    const { simulator } = await startEmpty(t)
    simulator.faults.add({ kind, method: 'POST', path, times: 1, skip, status: 400 })
    const half = await policy(simulator, ['apply', 'there'], { cwd })
    t.equal(half.code, 2)
    const said = (start: string) => half.out.filter((line) => line.startsWith(start)).length
    t.equal(said('Written: ') + said('Stopped in ') + said('Not written: '), 62, 'each object is in one of the lists')
    t.equal(said('Stopped in '), 1)
    t.match(half.err[0], /Part of it is in the draft\. When the cause is mended, the same command completes it\.$/)
    const rest = await policy(simulator, ['apply', 'there'], { cwd })
    t.same([rest.code, rest.err], [0, []])
    t.equal(rest.out.at(-1), 'Read back, the draft is what the files say.')
    const back = folder()
    await policy(simulator, ['export', 'back'], { cwd: back })
    t.same(textsIn(join(back, 'back')), textsIn(join(cwd, 'there')), 'and nothing is there twice')
  }
})

t.test('what somebody changed during the command is not overwritten', async (t) => {
  const { simulator, org } = await start(t)
  const cwd = write(folder(), {
    'there/a.yaml': 'kind: service\nname: SSH\nservice_ports: [{ port: 2222, proto: tcp }]\n',
    'there/b.yaml': 'kind: service\nname: New\nservice_ports: [{ port: 1, proto: tcp }]\n',
  })
  const [ssh]: { href: string; name: string }[] = await org('GET', '/sec_policy/draft/services?name=SSH')
  simulator.faults.add({
    kind: 'answer',
    method: 'GET',
    path: ssh!.href,
    times: 1,
    body: { ...ssh, description: 'Other' },
  })
  simulator.clearRequests()
  const stopped = await policy(simulator, ['apply', 'there'], { cwd })
  t.same(stopped, {
    code: 2,
    out: [],
    err: [
      'svc-mcp policy: Somebody else changed the service "SSH" during this command. Nothing was written. Run it again.',
    ],
  })
  t.same(writesOf(simulator), [])
  t.equal((await policy(simulator, ['apply', 'there'], { cwd })).code, 0)
})

t.test(
  'objects that another system keeps, or that somebody else is changing, are named before they are changed',
  async (t) => {
    const { simulator, org } = await start(t, { users: [{ role: 'owner' }] })
    await enrich(org)
    const [other] = simulator.keys
    const [ssh]: { href: string }[] = await org('GET', '/sec_policy/draft/services?name=SSH')
    const asOther = createCaller({ url: simulator.url, credentials: other! })
    t.equal((await asOther('PUT', ssh!.href, { description: 'by another' })).status, 204)
    const cwd = write(folder(), {
      'there/a.yaml': 'kind: service\nname: SSH\nservice_ports: [{ port: 2222, proto: tcp }]\n',
      'there/b.yaml': `kind: ip_list\nname: 'Büro/Halle 3: "café" 日本'\nfqdns: [a.example]\nexternal_data_set: cmdb\nexternal_data_reference: list-1\n`,
    })
    const dry = await policy(simulator, ['apply', '-n', 'there'], { cwd })
    t.equal(dry.code, 0)
    const [external, pending, ...more] = dry.out.filter((line) => line.startsWith('Warning: '))
    t.equal(
      external,
      'Warning: The IP list "Büro/Halle 3: \\"café\\" 日本" belongs to the external data set "cmdb": what keeps it may overwrite this.',
    )
    t.match(
      pending,
      /^Warning: The service "SSH": It already has pending changes of .+\. Provisioning it makes them active, too\.$/,
    )
    t.same(more, [])
  },
)

t.test('--prune deletes what nothing uses, nested groups from outside in, and never what others keep', async (t) => {
  const { simulator, org } = await start(t)
  await enrich(org)
  const cwd = folder()
  await policy(simulator, ['export', 'there'], { cwd })
  for (const path of Object.keys(textsIn(join(cwd, 'there'))))
    if (/all-stages|not-production|everything|cafe|telnet|s-https|services.case/.test(path))
      rmSync(join(cwd, 'there', path))
  write(cwd, { 'there/label-groups/own.yaml': 'kind: label_group\nname: Own\nkey: env\nlabels: [env=prod]\n' })
  simulator.clearRequests()
  const dry = await policy(simulator, ['apply', '-n', '--prune', 'there'], { cwd })
  t.same(writesOf(simulator), [])
  const expected = [
    '- rule set "Everything there is" (no file)',
    '- label group "All stages" (no file)',
    '- label group "Not production" (no file)',
    '- service "case" (no file)',
    '- service "S-HTTPS" (no file)',
    '- service "CASE" (no file)',
  ]
  const removals = (lines: readonly string[]) =>
    lines.filter((line) => line.startsWith('- ')).map((line) => line.replace(/ {2}\[.*$/, ''))
  t.same(removals(dry.out).sort(), [...expected].sort())
  const kept = dry.out.filter((line) => line.startsWith('Not deleted'))
  t.same(kept.map((line) => line.replace(/"[^"]*" uses it/, '… uses it')).sort(), [
    'Not deleted: the IP list "Büro/Halle 3: \\"café\\" 日本", because it belongs to the external data set "cmdb".',
    'Not deleted: the service "Telnet", because … uses it.',
  ])
  const without = await policy(simulator, ['apply', 'there'], { cwd })
  t.same(removals(without.out), [], 'without --prune nothing is deleted')
  const done = await policy(simulator, ['apply', '--prune', 'there'], { cwd })
  t.same([done.code, done.err], [0, []])
  t.same(removals(done.out).sort(), [...expected].sort())
})

t.test('a folder is never emptied or overwritten by accident, and comments stay where nothing changed', async (t) => {
  const { simulator, org } = await start(t)
  const old: { href: string } = await org('POST', '/sec_policy/draft/services', {
    name: 'Old',
    service_ports: [{ port: 1, proto: 6 }],
  })
  const cwd = folder()
  await policy(simulator, ['export', 'there'], { cwd })
  appendFileSync(join(cwd, 'there/services/ssh.yaml'), '# Ours\n')
  const refused = await policy(simulator, ['export', 'there'], { cwd })
  t.same([refused.code, refused.err], [2, ['svc-mcp policy: there has 55 files of policy; --force replaces them.']])
  const [rdp]: { href: string }[] = await org('GET', '/sec_policy/draft/services?name=RDP')
  await org('DELETE', old.href)
  await org('PUT', rdp!.href, { description: 'Changed' })
  const before = statSync(join(cwd, 'there/services/dns.yaml')).mtimeMs
  const forced = await policy(simulator, ['export', '--force', 'there'], { cwd })
  t.match(forced.out[0], /54 objects of the draft policy\. Files written: 1, removed: 1\.$/)
  t.match(readFileSync(join(cwd, 'there/services/ssh.yaml'), 'utf8'), /# Ours\n$/)
  t.match(readFileSync(join(cwd, 'there/services/rdp.yaml'), 'utf8'), /^description: Changed$/m)
  t.equal(statSync(join(cwd, 'there/services/dns.yaml')).mtimeMs, before)
  const foreign = write(folder(), { 'there/compose.yaml': 'services: {}\n' })
  const other = await policy(simulator, ['export', '--force', 'there'], { cwd: foreign })
  t.equal(other.code, 2)
  t.same(readdirSync(join(foreign, 'there')), ['compose.yaml'])
})

t.test('names that a file system would take for one are different files, and hidden characters are seen', async (t) => {
  const { simulator, org } = await start(t)
  await enrich(org)
  await org('POST', '/sec_policy/draft/ip_lists', { name: 'Left \u202e right', fqdns: [{ fqdn: 'a.example' }] })
  const cwd = folder()
  await policy(simulator, ['export', 'there'], { cwd })
  const texts = textsIn(join(cwd, 'there'))
  const paths = Object.keys(texts)
  t.equal(new Set(paths.map((path) => path.toLowerCase())).size, paths.length)
  const cases = paths.filter((path) => /^services.case/.test(path))
  t.same(
    cases.map((path) => /^services.case-[0-9a-f]{12}\.yaml$/.test(path)),
    [true, true],
  )
  t.same(cases.map((path) => /^name: (.*)$/m.exec(texts[path]!)![1]).sort(), ['CASE', 'case'])
  t.match(texts['services/0123.yaml'], /^name: "0123"$/m)
  t.match(texts['services/true.yaml'], /^name: "true"$/m)
  t.match(texts['ip-lists/buro-halle-3-cafe.yaml'], /^name: 'Büro\/Halle 3: "café" 日本'$/m)
  t.match(texts['ip-lists/left-right.yaml'], /^name: "Left \\u202e right"$/m)
  const other = await startEmpty(t)
  const refused = await policy(other.simulator, ['apply', 'there'], { cwd })
  t.same(refused.err, [
    'ip-lists/left-right.yaml:2: name "Left ⟨U+202E⟩ right" contains hidden characters.',
    'svc-mcp policy: 1 fault in the files. Nothing was written.',
  ])
})

t.test('who may only read writes nothing, and what is done is in the audit log', async (t) => {
  const { simulator } = await start(t)
  const cwd = write(folder(), { 'there/a.yaml': 'kind: ip_list\nname: X\nip_ranges: [10.0.0.0/8]\n' })
  const readOnly = await policy(simulator, ['apply', 'there'], { cwd, env: { MCP_READ_ONLY: '1' } })
  t.same(readOnly, {
    code: 2,
    out: [],
    err: ['svc-mcp policy: MCP_READ_ONLY is set, so apply writes nothing. --dry-run shows what it would write.'],
  })
  const dry = await policy(simulator, ['apply', '-n', 'there'], { cwd, env: { MCP_READ_ONLY: '1' } })
  t.equal(dry.out.at(-1), 'Would write 1 object; 0 are as the files say. Nothing was written.')
  t.same(writesOf(simulator), [])
  const audit = join(cwd, 'audit.log')
  await policy(simulator, ['apply', 'there'], { cwd, env: { MCP_AUDIT_LOG_PATH: audit } })
  const entries = readFileSync(audit, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, string>)
  t.same(
    entries.map(({ tool, phase, decision, outcome }) => [tool, phase, decision ?? outcome]),
    [
      ['policy-write', 'decision', 'allowed'],
      ['policy-write', 'outcome', 'success'],
    ],
  )
})

t.test('--help, and what is wrong with the command or the settings, with the exit code of trouble', async (t) => {
  const { simulator } = await start(t)
  const help = await policy(simulator, ['--help'])
  t.equal(help.code, 0)
  t.match(
    help.out.join('\n'),
    /export \[options\] <dir>[^]*diff \[options\] <dir>[^]*apply \[options\] <dir>[^]*Nothing is ever provisioned/,
  )
  const cases: [string[], object, RegExp][] = [
    [['diff'], {}, /missing required argument 'dir'/],
    [['difff', 'x'], {}, /unknown command 'difff'/],
    [['diff', '--against', 'old', 'x'], {}, /Allowed choices are draft, active/],
    [['diff', 'nowhere'], {}, /there are no YAML files in nowhere/],
    [['export', 'x'], { API_SECRET: '' }, /API_SECRET/],
    [['export', 'x'], { API_SECRET: 'wrong' }, /401/],
  ]
  const done = await Promise.all(cases.map(([args, env]) => policy(simulator, args, { env })))
  for (const [at, [, , words]] of cases.entries()) {
    t.equal(done[at]!.code, 2)
    t.ok(words.test(done[at]!.err.join('\n')), done[at]!.err.join('\n'))
  }
})
