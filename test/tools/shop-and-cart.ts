/** The objects of a small PCE in which one rule lets the application shop reach the application cart. */
import type { Json } from './harness.js'

const SETS = '/orgs/1/sec_policy/draft/rule_sets'

export const LABELS = [
  { href: '/orgs/1/labels/1', key: 'app', value: 'cart' },
  { href: '/orgs/1/labels/2', key: 'env', value: 'prod' },
  { href: '/orgs/1/labels/3', key: 'app', value: 'shop' },
] as const
export const [CART, PROD, SHOP] = LABELS

/** A workload of an application in prod. `mode`: undefined leaves the field out. */
export const hostOf = (name: string, app: Json, mode: string | null | undefined, managed = true): Json => ({
  href: `/orgs/1/workloads/${name}`,
  name,
  hostname: name,
  managed,
  labels: [app, PROD],
  ...(mode !== undefined && { enforcement_mode: mode }),
})

/** The lists of the policy: every workload of shop may reach those of cart on port 8080. */
export const POLICY: Record<string, Json[]> = {
  'sec_policy/services': [{ href: '/orgs/1/sec_policy/draft/services/1', name: 'All Services' }],
  'sec_policy/rule_sets': [
    {
      href: `${SETS}/1`,
      name: 'shop to cart',
      enabled: true,
      scopes: [[]],
      rules: [
        {
          href: `${SETS}/1/sec_rules/1`,
          enabled: true,
          providers: [{ label: CART }],
          consumers: [{ label: SHOP }],
          ingress_services: [{ port: 8080, proto: 6 }],
          unscoped_consumers: true,
        },
      ],
    },
  ],
}
