import { ALL_SERVICES_NAME, ANY_IP_LIST_NAME } from '../../../schemas/pce/words.js'
import { BRANCH_LIST, INTERNET_LIST } from './ip-lists.js'

/**
 * The consumers or the providers of a rule in a short notation: `ams` for all workloads, `list:<name>` for an IP list,
 * or labels as `key=value` separated by spaces. A leading `!` excludes a label. Scopes use the same notation for
 * labels.
 */
export type ActorWords = string

export interface RuleSpec {
  kind: 'allow' | 'deny' | 'override_deny'
  description: string
  providers: readonly ActorWords[]
  consumers: readonly ActorWords[]
  services: readonly string[]
  egress?: readonly string[]
  /** True if the consumers may be outside the scope of the rule set. */
  extraScope: boolean
}

export interface RuleSetSpec {
  name: string
  description: string
  enabled: boolean
  scopes: readonly string[]
  rules: readonly RuleSpec[]
}

type Words = ActorWords | readonly ActorWords[]

const words = (value: Words) => (typeof value === 'string' ? [value] : value)
const rule =
  (kind: RuleSpec['kind'], extraScope: boolean) =>
  (consumers: Words, providers: Words, services: Words, description = ''): RuleSpec => ({
    kind,
    description,
    providers: words(providers),
    consumers: words(consumers),
    services: words(services),
    extraScope,
  })

const within = rule('allow', false)
const from = rule('allow', true)
const deny = rule('deny', true)
const overrideDeny = rule('override_deny', true)

const ruleSet = (
  name: string,
  scopes: string | readonly string[],
  rules: readonly RuleSpec[],
  more: Partial<RuleSetSpec> = {},
): RuleSetSpec => ({
  name,
  description: '',
  enabled: true,
  scopes: words(scopes),
  rules,
  ...more,
})

const ANY = `list:${ANY_IP_LIST_NAME}`
const INTERNET = `list:${INTERNET_LIST}`
const BRANCHES = `list:${BRANCH_LIST}`

/**
 * The rule sets in the order of their ids; the first one is in every new organisation. Core services are open to
 * everyone, and some applications have rules of their own. `payments` in prod deliberately has none, so that adding
 * rules for it visibly changes the result of a later traffic query. The name `crm` is contained in `crm | prod`, so
 * that inexact lookups are noticed.
 */
export const RULE_SETS: readonly RuleSetSpec[] = [
  ruleSet('Default', '', [within('ams', ANY, ALL_SERVICES_NAME, 'Outbound is open')]),
  ruleSet('Core services', '', [
    within('ams', 'app=dns role=dns', 'DNS'),
    within('ams', 'app=ntp role=ntp', 'NTP'),
    within('ams', 'app=log-collection', 'Syslog over TLS'),
    within('app=monitoring', 'ams', ['Monitoring agents', 'Ping']),
    within('app=backup', 'ams', 'Backup agents'),
    within('app=jump-hosts', 'ams', ['SSH', 'RDP'], 'Administration goes through jump hosts'),
  ]),
  ruleSet('Core services - Active Directory', '', [within('ams', 'app=active-directory', 'Active Directory')]),
  ruleSet('Core services - patching', 'app=patching env=prod', [
    { ...from('ams', 'ams', 'Patching', 'Only the update client itself'), egress: ['Windows Update client'] },
  ]),
  ruleSet(
    'Print and file',
    ['app=print env=prod', 'app=file-share env=prod'],
    [from('ams', 'ams', ['SMB', 'Print spooler'])],
  ),
  ruleSet('identity | prod', 'app=identity env=prod', [
    within('ams', 'ams', ALL_SERVICES_NAME),
    from('env=prod', 'role=app', 'S-HTTP'),
    from(['role=endpoint', INTERNET], 'role=app', ['HTTPS', 'S-HTTP']),
  ]),
  ruleSet('billing | prod', 'app=billing env=prod', [
    within('role=web', 'role=app', 'Application ports'),
    within('role=app', 'role=db', 'Microsoft SQL Server'),
    from(['app=customer-portal', 'env=prod'], 'role=web', 'IIS worker'),
  ]),
  ruleSet('web-shop | prod', 'app=web-shop env=prod', [
    within('ams', 'ams', ALL_SERVICES_NAME),
    from(ANY, 'role=web', ['HTTP', 'HTTPS'], 'The shop is public'),
    from(['app=jump-hosts', 'app=monitoring'], 'ams', ['SSH', 'Monitoring agents']),
    deny(ANY, 'ams', ['SSH', 'RDP', 'SMB'], 'No administration but through jump hosts'),
  ]),
  ruleSet('ledger | prod', 'app=ledger env=prod', [
    within('ams', 'ams', ALL_SERVICES_NAME),
    from(['app=payments', 'app=billing', 'app=treasury', 'env=prod'], 'role=worker', 'S-HTTP'),
    {
      ...overrideDeny('ams', INTERNET, ALL_SERVICES_NAME, 'The ledger never talks to the internet'),
      extraScope: false,
    },
  ]),
  ruleSet('erp | prod', 'app=erp env=prod', [
    within('ams', 'ams', ALL_SERVICES_NAME),
    from([BRANCHES, 'role=endpoint'], 'role=worker', 'S-HTTP'),
    deny('!env=prod', 'role=db', 'Oracle', 'Production data stays in production'),
  ]),
  ruleSet('crm | prod', 'app=crm env=prod', [
    within('ams', 'ams', ALL_SERVICES_NAME),
    from('role=endpoint', 'role=web', 'HTTPS'),
  ]),
  ruleSet('crm', 'app=crm !env=prod', [within('ams', 'ams', ALL_SERVICES_NAME)]),
  ruleSet('catalog | prod', 'app=catalog env=prod', [
    within('ams', 'ams', ALL_SERVICES_NAME),
    from(['app=web-shop', 'app=recommendations', 'env=prod'], 'role=web', 'HTTPS'),
  ]),
  ruleSet('RF-treasury-prod', 'app=treasury env=prod', [
    within('ams', 'ams', ALL_SERVICES_NAME),
    from(['app=erp', 'app=pay', 'env=prod'], 'ams', ALL_SERVICES_NAME),
  ]),
  ruleSet('partner-gateway | prod', 'app=partner-gateway env=prod', [
    within('ams', 'ams', ALL_SERVICES_NAME),
    from(['list:Partner: logistics', INTERNET], 'role=app', ['HTTPS', 'S-HTTP']),
  ]),
  ruleSet('Legacy migration', 'env=prod', [from('ams', 'ams', 'Telnet')], {
    enabled: false,
    description: 'Switched off after the migration',
  }),
]
