import { Type } from '@sinclair/typebox'
import type { Route } from '../http/route.js'
import type { Json } from '../model.js'
import { plainRoutes, type PlainKind } from '../kinds/plain-kind.js'
import { notAcceptable, notFound } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { CLOSED, Nullable, OneOf, Port, Shape } from '../validate/shape.js'
import { PCE_FQDN } from '../world.js'
import { nameAuthors } from './name-authors.js'

const Text = Type.Optional(Nullable(Type.String()))
const OPTIONAL = {
  name: Text,
  request_timeout_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 60 })),
  bind_distinguished_name: Text,
  bind_password: Text,
  user_distinguished_name_pattern: Text,
  user_base_filter: Text,
  full_name_attribute: Text,
  user_memberof_attribute: Text,
  tls_ca_bundle: Text,
  insecure_disable_tls_certificate_verification: Type.Optional(Type.Boolean()),
}
const REQUIRED = {
  address: Type.String(),
  port: Port,
  authentication_method: OneOf('LDAP', 'LDAPS', 'STARTTLS'),
  user_base_distinguished_name: Type.String(),
  username_attribute: Type.String(),
}
const CREATE = new Shape(
  'authentication_settings_ldap_configs_post',
  Type.Object({ pce_fqdn: Type.Optional(Type.String()), ...REQUIRED, ...OPTIONAL }, CLOSED),
)
const UPDATE = new Shape(
  'authentication_settings_ldap_configs_put',
  Type.Object({ ...Type.Partial(Type.Object(REQUIRED)).properties, ...OPTIONAL }, CLOSED),
)

const DEFAULTS = {
  pce_fqdn: PCE_FQDN,
  name: null,
  request_timeout_seconds: 5,
  bind_distinguished_name: null,
  is_bind_password_set: false,
  user_distinguished_name_pattern: null,
  user_base_filter: null,
  full_name_attribute: null,
  user_memberof_attribute: null,
  tls_ca_bundle: null,
  insecure_disable_tls_certificate_verification: false,
}

/** A directory server. Its bind password is only ever written (P12): nothing here needs it, so nothing keeps it. */
const ldapConfig: PlainKind = {
  segment: 'ldap_configs',
  route: '/authentication_settings/ldap_configs',
  noun: 'ldap_config',
  ids: 'uuid',
  store: (world) => world.store('ldap_configs'),
  filters: {},
  build: (_world, body) => ({ ...DEFAULTS, ...withoutPassword(CREATE.read(body)) }),
  change: (_world, _current, body) => withoutPassword(UPDATE.read(body)),
  remove: () => null,
  render: (world, object) => nameAuthors(world, object),
}

export const ldapConfigRoutes: Route[] = [
  ...plainRoutes(ldapConfig),
  {
    path: '/authentication_settings/ldap_configs/:id/verify_connection',
    verbs: {
      POST: {
        event: 'ldap_config.verify_connection',
        handle: ({ world, path, fault }) => {
          if (!world.store('ldap_configs').get(path.replace(/\/verify_connection$/, ''))) throw notFound()
          // No directory is ever contacted: a test that needs a failing one configures it.
          if (fault?.kind === 'job-failed') {
            const { token, message } = UNCERTAIN.ldapConnectionFailure
            throw notAcceptable(token, typeof fault.body === 'string' ? fault.body : message)
          }
          return { status: 200, json: UNCERTAIN.ldapConnectionVerified }
        },
      },
    },
  },
]

function withoutPassword({ bind_password, ...fields }: Json & { bind_password?: string | null }): Json {
  if (bind_password === undefined) return fields
  return { ...fields, is_bind_password_set: bind_password !== null && bind_password !== '' }
}
