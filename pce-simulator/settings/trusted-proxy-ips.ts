import { Type, type Static } from '@sinclair/typebox'
import type { SingleKind } from '../kinds/single-kind.js'
import { invalidInput } from '../refusal.js'
import { requireAddress } from '../validate/require-address.js'
import { CLOSED, Nullable, Shape } from '../validate/shape.js'

const MAX_PER_REGION = 8

const Proxy = Type.Object({ pce_fqdn: Nullable(Type.String()), ip: Type.String() }, CLOSED)
const UPDATE = new Shape(
  'settings_trusted_proxy_ips_put',
  Type.Object({ trusted_proxy_ips: Type.Array(Proxy) }, CLOSED),
)

/** A list inside an object; a PUT replaces all of it (P12). */
export const trustedProxyIps: SingleKind = {
  route: '/orgs/:org/settings/trusted_proxy_ips',
  noun: 'trusted_proxy_ips',
  defaults: { max_trusted_proxy_ips_per_region: MAX_PER_REGION, trusted_proxy_ips: [] },
  shape: UPDATE,
  change(_world, _current, sent) {
    const { trusted_proxy_ips } = sent as Static<typeof UPDATE.schema>
    const perRegion = new Map<string | null, number>()
    for (const { pce_fqdn, ip } of trusted_proxy_ips) {
      requireAddress(ip)
      const count = (perRegion.get(pce_fqdn) ?? 0) + 1
      if (count > MAX_PER_REGION) throw invalidInput(`A region can have at most ${MAX_PER_REGION} trusted proxies`)
      perRegion.set(pce_fqdn, count)
    }
    return { trusted_proxy_ips }
  },
}
