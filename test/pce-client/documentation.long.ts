/** The page of the client: its tables come from the code and name all of the specification, its examples compile and run. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compileFunction } from 'node:vm'
import t from 'tap'
import ts from 'typescript'
import * as library from '../../pce-client/index.js'
import { KINDS } from '../../pce-client/kinds.js'
import type { PceClientOptions } from '../../pce-client/types.js'
import { parseFolder, parseText, readBullets, readInterface, readParts } from '../../scripts/docs/read-interfaces.js'
import { renderClientSections, renderMethods } from '../../scripts/docs/render-client.js'
import { KIND_SCHEMAS } from '../../schemas/pce/kinds.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { contains } from '../partial.js'
import { fakeTimers } from './support.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(join(ROOT, 'docs/pce-client.md'), 'utf8')

/** The named operations of the specification (S9), group by group. */
const OPERATIONS = `
get_default_ip_list get_default_service generate_pairing_key
get_traffic_flows get_traffic_flows_async get_async_queries delete_async_query download_async_query update_async_query_rules
get_traffic_flow_db_metrics
provision_policy_changes get_pending_policy_changes discard_pending_policy_changes get_policy_dependencies
get_modified_policy_objects check_policy get_policy_allow analyze_policy_impact restore_policy bulk_delete_policy_objects
search_rules
create_service_account_api_key delete_service_account_api_key get_user_api_keys create_user_api_key delete_user_api_key
get_org_api_keys delete_org_api_key login_user verify_ldap_connection
request_enforcement_instructions apply_enforcement_instructions multi_enforcement_instructions_request
multi_enforcement_instructions_applied
get_container_service_backends download_report get_risk_summary get_detected_core_services_summary
get_app_group_risk_summary get_app_group_risk_details
unpair_vens upgrade_vens ven_remote_action ven_auth_recovery get_ven_statistics get_ven_software_releases
get_ven_software_release delete_ven_software_release set_default_ven_release get_ven_release_images
get_workload_interfaces create_workload_interface delete_workload_interface get_workload_risk_details unpair_workloads
bulk_import_workloads
get_label_group_all_labels get_label_group_member_of reorder_label_mapping_rule bulk_delete_label_mapping_rules
bulk_update_label_mapping_rules run_label_mapping_rules get_label_mapping_job assign_label_mapping_labels
download_label_mapping_results
get_product_version get_node_available get_supercluster_leader
`
  .trim()
  .split(/\s+/)

const GENERIC =
  'get_by_reference get_by_name get get_all get_async create update delete bulk_create bulk_update bulk_delete'
/** And `is_user_name`, which is beside the specification. */
const TRANSPORT =
  'is_user_name set_credentials set_proxies set_timeout set_tls_settings get delete post put get_collection must_connect check_connection'

/** What stands in the column, without its code marks; rows of several tables one after the other. */
function columnOf(markdown: string, at: number): string[] {
  const lines = markdown
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\| (?:---|Method|Attribute)/.test(line))
  return lines.map((line) => {
    const cells = line.split(/(?<!\\)\|/)
    return cells[at + 1]!.trim().replaceAll('`', '')
  })
}

t.test('the tables', async (t) => {
  const sections = renderClientSections(KINDS, parseFolder(join(ROOT, 'pce-client')))
  const specNames = (section: string) =>
    columnOf(sections[section]!, 1)
      .filter((name) => name !== 'added here')
      .sort()

  t.equal(OPERATIONS.length, 68)
  t.same(specNames('client-operations'), [...OPERATIONS].sort(), 'name the operations of the specification')
  t.same(specNames('client-objects'), GENERIC.split(' ').sort(), 'the generic ones')
  t.same(specNames('client-transport'), TRANSPORT.split(' ').sort(), 'and those of transport')
  t.equal(specNames('client-kinds').length, 56)
  t.same(
    columnOf(sections['client-kinds']!, 0),
    Object.keys(KIND_SCHEMAS),
    'each kind has a read shape, and each shape a kind',
  )
  const row = sections['client-kinds']!.split('\n').find((line) => line.includes('`virtual_services`'))
  t.match(
    row,
    /\/orgs\/\{org_id\}\/sec_policy\/\{pversion\}\/virtual_services` \| GET POST \| GET PUT DELETE \| `bulkCreate` `bulkUpdate` \|/,
  )
  contains(t, row, 'draft and active | yes, narrowed by the PCE')
  contains(t, sections['client-errors'], '| `outcome_unknown` |')
  t.match(sections['client-options'], /\| `url` \| `string` \| yes \|/)

  for (const [name, content] of Object.entries(sections)) {
    t.ok(
      page.includes(`<!-- BEGIN generated:${name} -->\n${content}\n<!-- END generated:${name} -->`),
      `the page has ${name} as it is now`,
    )
    t.notMatch(content, /\([DPST]\d+/, 'without the numbers that comments cite')
  }
})

t.test('the page lists every error code of the client', async (t) => {
  const source = readFileSync(join(ROOT, 'pce-client/errors.ts'), 'utf8')
  const union = /export type PceErrorCode =([^]*?)\n\n/.exec(source)![1]!
  const codes = [...union.matchAll(/'(\w+)'/g)].map(([, code]) => code!)
  t.ok(codes.length > 10)
  const bullets = readBullets([parseText('errors.ts', source)], 'PceErrorCode')
  t.same(bullets.flatMap(({ terms }) => terms).sort(), codes.sort())
})

t.test('reads interfaces as they are written', async (t) => {
  const sources = [
    parseText(
      'a.ts',
      `/** Cited here (P1). */
       export interface Plain { one: string; two?: number
         /** Starts it at /a.b. Then more. */
         start(of: string, options?: RequestOptions): Promise<Result<string>>
         /** Fetches (P12, P13) a file,
          * however large. */
         fetch(of: string, options: Sink): Promise<number>
         fetch(of: string): Promise<string>
         /** @deprecated Use start. */
         old(): void
       }
       export interface More { again(): void }
       export type Mapped = { [K in 'x']: string }
       export type Both = Plain & Inner & Mapped
       type Inner = More`,
    ),
  ]
  const { methods, properties } = readInterface(sources, 'Plain')
  t.same(
    methods.map(({ name, result, summary, deprecated }) => ({ name, result, summary, deprecated })),
    [
      { name: 'start', result: 'Result<string>', summary: 'Starts it at /a.b.', deprecated: false },
      { name: 'fetch', result: 'number | string', summary: 'Fetches a file, however large.', deprecated: false },
      { name: 'old', result: 'void', summary: 'Use start.', deprecated: true },
    ],
  )
  t.same(
    methods[1]!.parameters.map(({ name, optional }) => [name, optional]),
    [
      ['of', false],
      ['options', true],
    ],
  )
  t.same(
    properties.map(({ name, optional }) => [name, optional]),
    [
      ['one', false],
      ['two', true],
    ],
  )
  t.same(
    readParts(sources, 'Both').map(({ name }) => name),
    ['Plain', 'More'],
    'through aliases, without mapped types',
  )
  contains(t, renderMethods(methods), '| `fetch` | `fetch` | `of: string`, `options?: Sink` | `number \\| string` |')
  contains(t, renderMethods(methods), '|  | `void` | Deprecated. Use start. |')
  t.throws(() => renderMethods(readInterface(sources, 'More').methods), /again has no docstring/)
  t.throws(() => readInterface(sources, 'None'), /0 types are called None/)
})

interface Example {
  code: string
  runs: boolean
}

const examples: Example[] = [...page.matchAll(/^```ts( no-run)?\n([^]*?)^```$/gm)].map(([, noRun, code]) => ({
  code: code!,
  runs: noRun === undefined,
}))

/** The examples as one program: the first one makes the client that the others use, each in a block of its own unless it names things. */
function toProgram(chosen: readonly Example[]): string {
  const imports = chosen.flatMap(({ code }) => code.match(/^import .*$/gm) ?? [])
  const bodies = chosen.map(({ code }) => code.replaceAll(/^import .*\n/gm, ''))
  return [...imports, 'export {}', ...bodies].join('\n')
}

t.test('the examples compile', async (t) => {
  t.ok(examples.length >= 12, 'there are examples')
  const path = join(ROOT, 'docs-example.ts')
  const text = toProgram(examples)
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(join(ROOT, 'tsconfig.json'), (name) => ts.sys.readFile(name)).config,
    ts.sys,
    ROOT,
  )
  const settings = { ...options, paths: { 'svc-mcp/pce-client': [join(ROOT, 'pce-client/index.ts')] } }
  const host = ts.createCompilerHost(settings)
  const onDisk = { exists: host.fileExists.bind(host), read: host.getSourceFile.bind(host) }
  host.fileExists = (name) => name === path || onDisk.exists(name)
  host.getSourceFile = (name, target) =>
    name === path ? ts.createSourceFile(name, text, target) : onDisk.read(name, target)
  const program = ts.createProgram([path], settings, host)
  const problems = [
    ...program.getSyntacticDiagnostics(program.getSourceFile(path)),
    ...program.getSemanticDiagnostics(program.getSourceFile(path)),
  ]
  t.same(
    problems.map(
      ({ start, messageText }) =>
        `${text.slice(0, start).split('\n').at(-1)}…: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    ),
    [],
  )
  contains(t, text, 'createPceClient', 'and are what was compiled')
})

t.test('the examples run', async (t) => {
  const pce = await createPceSimulator({ seed: 3, workloads: 60, flows: 500 })
  const url = await pce.listen()
  t.teardown(() => pce.close())
  const { timers } = fakeTimers()
  const said: unknown[][] = []
  const given = {
    ...library,
    createPceClient: (options: PceClientOptions) => library.createPceClient({ ...options, timers }),
    process: {
      env: {
        PCE_URL: url,
        PCE_PORT: new URL(url).port,
        PCE_API_KEY: pce.credentials.key,
        PCE_API_SECRET: pce.credentials.secret,
      },
    },
    console: { log: (...values: unknown[]) => said.push(values) },
  }
  const text = toProgram(examples.filter(({ runs }) => runs)).replaceAll(/^(?:import|export) .*$/gm, '')
  const { outputText } = ts.transpileModule(text, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
  })
  const run = compileFunction(`return (async () => { ${outputText} })()`, Object.keys(given)) as (
    ...values: unknown[]
  ) => Promise<void>
  await run(...Object.values(given))

  const lines = said.map((values) => JSON.stringify(values).slice(1, -1))
  const says = (line: string | RegExp, what: string) =>
    t.ok(
      lines.some((said) => (typeof line === 'string' ? said === line : line.test(said))),
      `${what}: ${line}`,
    )
  says('true,1', 'the rule is in its rule set')
  says('2,0', 'two workloads are made and deleted')
  says(/^"done",\d+$/, 'the asynchronous job ends')
  says('406,"label_key_and_value_must_be_unique"', 'a refusal has its token')
  says(/^2,\d+$/, 'the policy has a new version')
  says(/^"[1-9]\d* rows, [1-9]\d* connections"$/, 'traffic comes')
  t.equal(pce.state.policyVersion, 2, 'which the PCE has')
  t.same(pce.state.pendingHrefs(), [], 'and nothing is pending')
})
