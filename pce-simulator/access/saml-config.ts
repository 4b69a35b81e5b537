import { Type } from '@sinclair/typebox'
import { birthOf } from '../built-in-objects.js'
import type { Route } from '../http/route.js'
import type { Json } from '../model.js'
import { changePlain, plainRoutes, type PlainKind } from '../kinds/plain-kind.js'
import { invalidInput, notFound } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { CLOSED, Shape } from '../validate/shape.js'
import { PCE_FQDN, type World } from '../world.js'
import { nameAuthors } from './name-authors.js'

const COLLECTION = '/authentication_settings/saml_configs'
const YEAR_MS = 365 * 86_400_000

const Text = Type.Optional(Type.String())
const Flag = Type.Optional(Type.Boolean())
const UPDATE = new Shape(
  'authentication_settings_saml_configs_put',
  Type.Object(
    {
      idp_sso_target_url: Text,
      idp_slo_target_url: Text,
      idp_cert: Text,
      authn_context: Text,
      force_authn: Flag,
      sign_authn_request: Flag,
    },
    CLOSED,
  ),
)

/** An identity provider: every PCE has one, there is neither POST nor DELETE (P12). */
const samlConfig: PlainKind = {
  segment: 'saml_configs',
  route: COLLECTION,
  noun: 'saml_config',
  ids: 'uuid',
  store: (world) => world.store('saml_configs'),
  filters: {},
  change(_world, _current, body) {
    const fields = UPDATE.read(body)
    for (const url of [fields.idp_sso_target_url, fields.idp_slo_target_url]) {
      if (url !== undefined && url !== '' && !URL.canParse(url)) throw invalidInput(`${url} is not a URL`)
    }
    return fields
  },
  render: (world, object) => nameAuthors(world, object),
}

export const samlConfigRoutes: Route[] = [
  ...plainRoutes(samlConfig),
  {
    path: `${COLLECTION}/:id/pce_signing_cert`,
    verbs: {
      POST: {
        event: 'saml_config.pce_signing_cert',
        handle: ({ world, path }) => {
          const current = world.store('saml_configs').get(path.replace(/\/pce_signing_cert$/, ''))
          if (!current) throw notFound()
          const change = changePlain(samlConfig, world, current, makeCertificate(world))
          const json = nameAuthors(world, world.store('saml_configs').get(current.href)!)
          return { status: UNCERTAIN.samlSigningCertStatus, json, changes: [change] }
        },
      },
    },
  },
]

export function seedSamlConfig(world: World): void {
  const uuid = world.ids.uuid('saml_configs')
  world.store('saml_configs').set({
    href: `${COLLECTION}/${uuid}`,
    cluster_fqdn: PCE_FQDN,
    idp_sso_target_url: '',
    idp_slo_target_url: '',
    idp_cert: '',
    issuer: `https://${PCE_FQDN}:8443/login`,
    consumer_service_url: `https://${PCE_FQDN}:8443/login/acs/${uuid}`,
    consumer_logout_url: `https://${PCE_FQDN}:8443/login/logout/${uuid}`,
    name_identifier_format: 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
    authn_context: 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport',
    force_authn: false,
    sign_authn_request: false,
    pce_signing_cert: null,
    pce_signing_cert_expires_at: null,
    ...birthOf(world),
  })
}

/** Looks like a certificate and is none: nobody signs anything here. */
function makeCertificate(world: World): Json {
  const text = Buffer.from(world.ids.hex('signing-cert', 48)).toString('base64')
  return {
    pce_signing_cert: `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`,
    pce_signing_cert_expires_at: new Date(world.clock() + YEAR_MS).toISOString(),
  }
}
