import { ID, NO_UUID, type KindRow } from '../kind-row.js'
import type { ContractPce } from '../start-contract-pce.js'

const ROLE = (name: string) => ({ href: `/orgs/1/roles/${name}` })
const STAMPS = ['created_at', 'updated_at', 'created_by', 'updated_by']

/** Users, keys, roles and the ways to log in (P12, P28). */
export async function accessKinds(pce: ContractPce): Promise<KindRow[]> {
  const label = await pce.ask<{ href: string }>('POST', '/orgs/1/labels', { key: 'app', value: 'Contract access' })
  const group = await pce.ask<{ href: string }>('POST', '/orgs/1/auth_security_principals', {
    type: 'group',
    name: 'operators',
    display_name: 'Operators',
  })
  return [
    {
      kind: 'access_restrictions',
      path: '/orgs/1/access_restrictions',
      id: ID.int,
      fields: ['href', 'name', 'ips', ...STAMPS],
      creates: [
        { body: { name: 'Offices', ips: ['192.0.2.0/24'] } },
        {
          body: {
            name: 'Data centre',
            description: 'Jump hosts',
            ips: ['198.51.100.7', '2001:db8::/32'],
            enforcement_exclusions: ['user_sessions'],
          },
        },
      ],
      update: { body: { description: 'Jump hosts only', ips: ['198.51.100.8'] } },
      remove: true,
      unknown: '999999',
    },
    {
      kind: 'auth_security_principals',
      path: '/orgs/1/auth_security_principals',
      id: ID.uuid,
      fields: ['href', 'type', 'name'],
      creates: [
        { body: { type: 'user', name: 'ada@example.com', display_name: 'Ada' } },
        { body: { type: 'group', name: 'auditors', display_name: 'Auditors', access_restriction: null } },
      ],
      update: { body: { display_name: 'Auditors, external' } },
      remove: true,
      filter: {
        params: { name: 'audit' },
        wire: { name: 'audit' },
        keeps: ({ name }) => String(name).includes('audit'),
      },
      unknown: NO_UUID,
    },
    {
      kind: 'authentication_settings',
      path: '/authentication_settings',
      single: 'object',
      fields: ['authentication_type'],
      update: { body: { authentication_type: 'LDAP' } },
    },
    {
      kind: 'ldap_configs',
      path: '/authentication_settings/ldap_configs',
      id: ID.uuid,
      fields: [
        ...['href', 'pce_fqdn', 'address', 'port', 'authentication_method', 'request_timeout_seconds', 'tls_ca_bundle'],
        ...['bind_distinguished_name', 'is_bind_password_set', 'user_base_distinguished_name', 'username_attribute'],
        ...['insecure_disable_tls_certificate_verification', ...STAMPS],
      ],
      creates: [
        {
          body: {
            address: 'ldap.example.com',
            port: 389,
            authentication_method: 'LDAP',
            user_base_distinguished_name: 'ou=people,dc=example,dc=com',
            username_attribute: 'uid',
          },
        },
        {
          body: {
            name: 'Second directory',
            address: 'ldap2.example.com',
            port: 636,
            authentication_method: 'LDAPS',
            request_timeout_seconds: 10,
            bind_distinguished_name: 'cn=reader,dc=example,dc=com',
            bind_password: 'of-a-directory',
            user_base_distinguished_name: 'ou=people,dc=example,dc=com',
            user_base_filter: '(objectClass=person)',
            username_attribute: 'uid',
            full_name_attribute: 'cn',
            insecure_disable_tls_certificate_verification: false,
          },
          reads: { name: 'Second directory', port: 636, bind_password: undefined },
        },
      ],
      update: { body: { port: 3269, request_timeout_seconds: 20 } },
      remove: true,
      unknown: NO_UUID,
    },
    {
      kind: 'saml_configs',
      path: '/authentication_settings/saml_configs',
      id: ID.uuid,
      fields: [
        ...['href', 'cluster_fqdn', 'idp_sso_target_url', 'idp_slo_target_url', 'idp_cert', 'issuer', 'authn_context'],
        ...['consumer_service_url', 'consumer_logout_url', 'force_authn', 'sign_authn_request', ...STAMPS],
      ],
      update: { body: { idp_sso_target_url: 'https://idp.example.com/sso', force_authn: true } },
      unknown: NO_UUID,
    },
    {
      kind: 'password_policy',
      path: '/authentication_settings/password_policy',
      single: 'object',
      fields: [
        ...['require_type_number', 'require_type_lowercase', 'require_type_uppercase', 'require_type_symbol'],
        ...['min_characters_per_type', 'min_length', 'min_changed_characters', 'history_count', 'expire_time_days'],
        ...['session_timeout_minutes', 'updated_at', 'updated_by'],
      ],
      update: { body: { min_length: 17, history_count: 4 } },
    },
    {
      kind: 'permissions',
      path: '/orgs/1/permissions',
      id: ID.uuid,
      fields: ['href', 'role', 'scope', 'auth_security_principal'],
      creates: [
        { body: { role: ROLE('read_only'), scope: [], auth_security_principal: { href: group.href } } },
        {
          body: {
            role: ROLE('ruleset_manager'),
            scope: [{ label: { href: label.href } }],
            auth_security_principal: { href: group.href },
          },
        },
      ],
      update: { body: { role: ROLE('ruleset_provisioner') } },
      remove: true,
      filter: {
        params: { role: JSON.stringify('/orgs/1/roles/read_only') },
        wire: { role: '"/orgs/1/roles/read_only"' },
        keeps: ({ role }) => (role as { href: string }).href === '/orgs/1/roles/read_only',
      },
      bad: { role: ROLE('read_only'), auth_security_principal: { href: group.href } },
      unknown: NO_UUID,
    },
    { kind: 'roles', path: '/orgs/1/roles', id: /^[a-z_]+$/, fields: ['href'], unknown: 'no_such_role' },
    {
      kind: 'service_accounts',
      path: '/orgs/1/service_accounts',
      id: ID.uuid,
      fields: ['href', 'name', 'permissions', 'api_keys', ...STAMPS],
      secret: 'api_key.secret',
      creates: [
        {
          body: {
            name: 'Backup',
            permissions: [{ role: ROLE('read_only'), scope: [] }],
            api_key: { expires_in_seconds: 86_400 },
          },
          reads: { name: 'Backup', permissions: [{ role: ROLE('read_only'), scope: [] }], api_key: undefined },
        },
        {
          body: {
            name: 'Deployment',
            description: 'Writes rules of one application',
            permissions: [{ role: ROLE('ruleset_manager'), scope: [{ label: { href: label.href } }] }],
            access_restriction: null,
            api_key: { expires_in_seconds: 'default' },
          },
          reads: {
            name: 'Deployment',
            description: 'Writes rules of one application',
            permissions: [{ role: ROLE('ruleset_manager'), scope: [{ label: { href: label.href } }] }],
          },
        },
      ],
      update: { body: { description: 'Writes rules' } },
      remove: true,
      filter: { params: { name: 'Backup' }, wire: { name: 'Backup' }, keeps: ({ name }) => name === 'Backup' },
      bad: { name: 'No key', permissions: [] },
      unknown: NO_UUID,
    },
    {
      kind: 'users',
      path: '/users',
      id: ID.int,
      fields: ['href', 'username', 'full_name', 'type', 'time_zone', 'login_count', 'last_login_on', 'created_at'],
      creates: [
        { body: { username: 'grace@example.com', type: 'local' } },
        {
          body: {
            username: 'barbara@example.com',
            type: 'local',
            full_name: 'Barbara Example',
            time_zone: 'Europe/Berlin',
          },
        },
      ],
      update: { body: { full_name: 'Barbara B. Example', locked: true } },
      filter: {
        params: { type: 'external' },
        wire: { type: 'external' },
        keeps: ({ type }) => type === 'external',
        none: true,
      },
      bad: { username: 'no address', type: 'local' },
      unknown: '999999',
    },
    {
      kind: 'security_principals',
      path: '/orgs/1/security_principals',
      id: /^S-[\d-]+$/,
      fields: ['href', 'sid', 'name', 'deleted', 'used_by_ruleset'],
      creates: [
        { body: { sid: 'S-1-5-21-1111111111-2222222222-3333333333-1001', name: 'Clerks' } },
        {
          body: {
            sid: 'S-1-5-21-1111111111-2222222222-3333333333-1002',
            name: 'Administrators',
            description: 'Of the domain',
          },
        },
      ],
      update: { body: { description: 'Of every domain' } },
      remove: true,
      filter: {
        params: { name: 'Clerks' },
        wire: { name: 'Clerks' },
        keeps: ({ name }) => name === 'Clerks',
      },
      unknown: 'S-1-5-21-9-9-9-9',
    },
  ]
}
