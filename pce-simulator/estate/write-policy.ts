import type { IpList } from '../../schemas/pce/ip-list.js'
import type { VersionedObject } from '../../schemas/pce/reference.js'
import type { Actor, RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import { IP_LISTS, type IpListSpec } from './data/ip-lists.js'
import { RULE_SETS, type RuleSetSpec, type RuleSpec } from './data/rule-sets.js'
import { SERVICES, type ServiceSpec } from './data/services.js'
import { CREATED_AT, type LabelBook } from './number-labels.js'

export interface Policy {
  ipLists: IpList[]
  services: Service[]
  ruleSets: RuleSet[]
}

/**
 * Creates the estate's policy objects with draft hrefs and without pending changes. The objects of each type are
 * numbered from 1, in the order of the list of that type in `data/`.
 */
export function writePolicy(orgId: number, labels: LabelBook): Policy {
  const draft = `/orgs/${orgId}/sec_policy/draft`
  const ipLists = IP_LISTS.map((spec, index) => writeIpList(`${draft}/ip_lists/${index + 1}`, spec))
  const services = SERVICES.map((spec, index) => writeService(`${draft}/services/${index + 1}`, spec))
  const find = { labels, ipLists: byName(ipLists), services: byName(services) }
  let ruleId = 0
  const ruleSets = RULE_SETS.map((spec, index) =>
    writeRuleSet(`${draft}/rule_sets/${index + 1}`, spec, find, () => (ruleId += 1)),
  )
  return { ipLists, services, ruleSets }
}

interface Lookup {
  labels: LabelBook
  ipLists: ReadonlyMap<string, IpList>
  services: ReadonlyMap<string, Service>
}

const byName = <T extends { name: string }>(objects: readonly T[]) =>
  new Map(objects.map((object) => [object.name, object]))

const bookkeeping = (href: string) => ({
  href,
  created_at: CREATED_AT,
  updated_at: CREATED_AT,
  deleted_at: null,
  created_by: { href: '/users/1' },
  updated_by: { href: '/users/1' },
  deleted_by: null,
  update_type: null,
})

const versioned = (href: string): VersionedObject => ({
  ...bookkeeping(href),
  external_data_set: null,
  external_data_reference: null,
  caps: ['write', 'provision'],
})

function writeIpList(href: string, { name, description, ranges, fqdns = [] }: IpListSpec): IpList {
  return {
    ...versioned(href),
    name,
    description,
    ip_ranges: ranges.map((text) => {
      const [from_ip = '', to_ip] = text.replace('!', '').split('-')
      return { from_ip, ...(to_ip === undefined ? {} : { to_ip }), description: '', exclusion: text.startsWith('!') }
    }),
    fqdns: fqdns.map((fqdn) => ({ fqdn, description: '' })),
  }
}

function writeService(href: string, { name, ports, windows, windowsEgress }: ServiceSpec): Service {
  const lists = {
    ...(ports === undefined ? {} : { service_ports: ports.map((port) => ({ ...port })) }),
    ...(windows === undefined ? {} : { windows_services: windows.map((service) => ({ ...service })) }),
    ...(windowsEgress === undefined
      ? {}
      : { windows_egress_services: windowsEgress.map((service) => ({ ...service })) }),
  }
  return {
    ...versioned(href),
    name,
    description: '',
    description_url: null,
    process_name: null,
    ...lists,
    risk_details: { ransomware: null },
  }
}

function writeRuleSet(href: string, spec: RuleSetSpec, find: Lookup, nextId: () => number): RuleSet {
  const allowed = spec.rules.filter(({ kind }) => kind === 'allow')
  const denied = spec.rules.filter(({ kind }) => kind !== 'allow')
  return {
    ...versioned(href),
    name: spec.name,
    description: spec.description,
    enabled: spec.enabled,
    scopes: spec.scopes.map((words) => readActors([words], find) as ScopeEntry[]),
    rules: allowed.map((rule) => ({
      ...writeRule(`${href}/sec_rules/${nextId()}`, rule, find),
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
      sec_connect: false,
      stateless: false,
      machine_auth: false,
      consuming_security_principals: [],
      use_workload_subnets: [],
      external_data_set: null,
      external_data_reference: null,
    })),
    deny_rules: denied.map((rule) => ({
      ...writeRule(`${href}/deny_rules/${nextId()}`, rule, find),
      override: rule.kind === 'override_deny',
      caps: ['write'],
    })),
    ip_tables_rules: [],
  }
}

const writeRule = (href: string, rule: RuleSpec, find: Lookup) => ({
  ...bookkeeping(href),
  enabled: true,
  description: rule.description,
  providers: readActors(rule.providers, find),
  consumers: readActors(rule.consumers, find),
  ingress_services: rule.services.map((name) => ({ href: named(find.services, name).href })),
  egress_services: (rule.egress ?? []).map((name) => ({ href: named(find.services, name).href })),
  network_type: 'brn' as const,
  unscoped_consumers: rule.extraScope,
})

/**
 * Converts the short notation of a rule's consumers or providers, such as `ams` or `list:<name>` (see
 * data/rule-sets.ts), to actors. Throws RangeError if it contains a name that the estate does not have.
 */
function readActors(words: readonly string[], find: Lookup): Actor[] {
  return words.flatMap((word): Actor[] => {
    if (word === 'ams') return [{ actors: 'ams' }]
    if (word.startsWith('list:')) {
      const { href, name } = named(find.ipLists, word.slice('list:'.length))
      return [{ ip_list: { href, name } }]
    }
    return word
      .split(' ')
      .filter((label) => label !== '')
      .map((text) => {
        const [key = '', value = ''] = text.replace('!', '').split('=')
        return { label: { href: find.labels.find(key, value).href, key, value }, exclusion: text.startsWith('!') }
      })
  })
}

function named<T>(objects: ReadonlyMap<string, T>, name: string): T {
  const object = objects.get(name)
  if (object === undefined) throw new RangeError(`the estate has nothing named ${name}`)
  return object
}
