import { ID, type KindRow } from '../kind-row.js'
import type { ContractPce } from '../start-contract-pce.js'

const DRAFT = '/orgs/1/sec_policy/draft'
const ANY = `${DRAFT}/ip_lists/1`
const VERSIONED = ['href', 'created_at', 'updated_at', 'created_by', 'updated_by']
const WORKLOADS = { providers: ['workloads'], consumers: ['workloads'] }

/** Rule sets, rules and boundaries (P4, P19, P20, P21, P22). */
export async function ruleKinds(pce: ContractPce): Promise<KindRow[]> {
  const made = async (path: string, body: object) => (await pce.ask<{ href: string }>('POST', path, body)).href
  const app = await made('/orgs/1/labels', { key: 'app', value: 'Contract rules' })
  const env = await made('/orgs/1/labels', { key: 'env', value: 'Contract rules' })
  const ruleSet = await made(`${DRAFT}/rule_sets`, { name: 'Contract parent', scopes: [[]] })
  const web = await made(`${DRAFT}/services`, { name: 'Contract web', service_ports: [{ port: 443, proto: 6 }] })
  await pce.ask('POST', '/orgs/1/sec_policy', { update_description: 'The ground' })
  const ofRuleSet = { type: 'rule_sets', href: ruleSet }

  return [
    {
      kind: 'rule_sets',
      path: `${DRAFT}/rule_sets`,
      versioned: true,
      id: ID.int,
      fields: ['name', 'description', 'enabled', 'scopes', 'rules', 'deleted_at', 'update_type', ...VERSIONED],
      creates: [
        { body: { name: 'Contract open', scopes: [[]] } },
        {
          body: {
            name: 'Contract prod',
            description: 'With rules',
            enabled: true,
            scopes: [[{ label: { href: app } }, { label: { href: env } }]],
            rules: [
              {
                enabled: true,
                providers: [{ actors: 'ams' }],
                consumers: [{ ip_list: { href: ANY } }],
                ingress_services: [{ href: web }, { port: 5432, proto: 6 }],
                resolve_labels_as: WORKLOADS,
              },
            ],
            ip_tables_rules: [
              {
                enabled: true,
                description: 'ssh',
                statements: [{ table_name: 'filter', chain_name: 'INPUT', parameters: '-p tcp --dport 22 -j ACCEPT' }],
                actors: [{ actors: 'ams' }],
                ip_version: '4',
              },
            ],
            external_data_set: 'cmdb',
            external_data_reference: 'rs-1',
          },
        },
      ],
      update: { body: { description: 'With rules for all', enabled: false } },
      remove: true,
      filter: {
        params: { labels: [[app]] },
        wire: { labels: `[["${app}"]]` },
        keeps: ({ scopes }) => JSON.stringify(scopes).includes(`"${app}"`),
      },
      bad: { name: 'x', scopes: null },
      conflict: { body: { name: 'Contract open', scopes: [[]] }, token: 'rule_set_name_in_use' },
      unknown: '999999',
    },
    {
      kind: 'rules',
      path: `${ruleSet}/sec_rules`,
      parent: ruleSet,
      versioned: true,
      provisions: ofRuleSet,
      id: ID.int,
      fields: [
        'enabled',
        'providers',
        'consumers',
        'ingress_services',
        'resolve_labels_as',
        'update_type',
        ...VERSIONED,
      ],
      creates: [
        {
          body: {
            enabled: true,
            providers: [{ actors: 'ams' }],
            consumers: [{ actors: 'ams' }],
            ingress_services: [{ href: web }],
            resolve_labels_as: WORKLOADS,
          },
        },
        {
          body: {
            enabled: false,
            description: 'The web tier',
            providers: [{ label: { href: app } }, { label: { href: env } }],
            consumers: [{ ip_list: { href: ANY } }, { actors: 'container_host' }],
            ingress_services: [{ href: web }, { port: 8000, to_port: 8099, proto: 6 }],
            resolve_labels_as: WORKLOADS,
            sec_connect: false,
            stateless: true,
            machine_auth: false,
            unscoped_consumers: true,
            network_type: 'all',
            external_data_set: 'cmdb',
            external_data_reference: 'rule-1',
          },
        },
      ],
      update: { body: { description: 'No tier', enabled: true } },
      remove: true,
      filter: {
        params: { external_data_set: 'cmdb', external_data_reference: 'rule-1' },
        wire: { external_data_set: 'cmdb', external_data_reference: 'rule-1' },
        keeps: ({ external_data_reference }) => external_data_reference === 'rule-1',
      },
      bad: { enabled: true, providers: [], consumers: [{ actors: 'ams' }], ingress_services: [{ href: web }] },
      conflict: {
        body: {
          enabled: true,
          providers: [{ actors: 'ams' }],
          consumers: [{ actors: 'ams' }],
          ingress_services: [],
          resolve_labels_as: WORKLOADS,
        },
        token: 'ingress_services_cannot_be_empty',
      },
      unknown: '999999',
    },
    {
      kind: 'deny_rules',
      path: `${ruleSet}/deny_rules`,
      parent: ruleSet,
      versioned: true,
      provisions: ofRuleSet,
      id: ID.int,
      fields: ['href', 'enabled', 'override', 'providers', 'consumers', 'ingress_services', 'update_type'],
      creates: [
        {
          body: {
            enabled: true,
            providers: [{ actors: 'ams' }],
            consumers: [{ ip_list: { href: ANY } }],
            ingress_services: [{ port: 23, proto: 6 }],
          },
        },
        {
          body: {
            enabled: false,
            override: true,
            description: 'No telnet at all',
            providers: [{ label: { href: app }, exclusion: true }],
            consumers: [{ ip_list: { href: ANY } }],
            ingress_services: [{ port: 23, proto: 6 }],
            network_type: 'brn',
            unscoped_consumers: true,
          },
        },
      ],
      update: { body: { description: 'Telnet is over', enabled: true } },
      remove: true,
      bad: {
        enabled: true,
        providers: [{ actors: 'ams' }],
        consumers: [{ actors: 'ams' }],
        ingress_services: [{ port: 23, proto: 6 }],
        resolve_labels_as: WORKLOADS,
      },
      unknown: '999999',
    },
    {
      kind: 'enforcement_boundaries',
      path: `${DRAFT}/enforcement_boundaries`,
      versioned: true,
      id: ID.int,
      fields: ['href', 'name', 'providers', 'consumers', 'ingress_services', 'update_type'],
      creates: [
        {
          body: {
            name: 'Contract boundary',
            providers: [{ actors: 'ams' }],
            consumers: [{ ip_list: { href: ANY } }],
            ingress_services: [{ port: 3389, proto: 6 }],
          },
        },
        {
          body: {
            name: 'Contract boundary of an application',
            enabled: true,
            providers: [{ label: { href: app } }],
            consumers: [{ actors: 'ams' }],
            ingress_services: [{ href: web }],
          },
        },
      ],
      update: { body: { ingress_services: [{ port: 3390, proto: 6 }] } },
      remove: true,
      filter: {
        params: { name: 'of an appl' },
        wire: { name: 'of an appl' },
        keeps: ({ name }) => String(name).includes('of an appl'),
      },
      bad: { name: 'x', providers: [{ actors: 'ams' }], consumers: [{ actors: 'ams' }] },
      unknown: '999999',
    },
  ]
}
