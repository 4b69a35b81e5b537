import type { Label } from '../../schemas/pce/label.js'
import { APPLICATIONS, ENVIRONMENTS } from './data/applications.js'
import { SHARED_SERVICES } from './data/infrastructure.js'
import { APPLIANCES } from './data/other-hosts.js'
import { STACKS } from './data/stacks.js'

export const LOCATIONS = ['eu-central', 'eu-west', 'us-east', 'dc1'] as const
export type Location = (typeof LOCATIONS)[number]

/** The creation time of all objects in an estate. Only the traffic is later. */
export const CREATED_AT = '2026-01-10T09:00:00.000Z'

export const ENDPOINT_ROLE = 'endpoint'

export interface LabelBook {
  labels: Label[]
  /** Finds a label. Throws RangeError if the estate has no such label. */
  find(key: string, value: string): Label
}

/** Creates every label of the four built-in dimensions, numbered from 1, even if the estate is too small to use it. */
export function numberLabels(orgId: number): LabelBook {
  const values: Record<string, readonly string[]> = {
    role: [
      ...Object.values(STACKS).flatMap(({ tiers }) => tiers.map(({ role }) => role)),
      ...SHARED_SERVICES.map(({ role }) => role),
      ...APPLIANCES.map(({ role }) => role),
      ENDPOINT_ROLE,
    ],
    app: [...APPLICATIONS.map(({ name }) => name), ...SHARED_SERVICES.map(({ app }) => app)],
    env: ENVIRONMENTS,
    loc: LOCATIONS,
  }
  const pairs = Object.entries(values).flatMap(([key, all]) => [...new Set(all)].map((value) => ({ key, value })))
  const labels = pairs.map(({ key, value }, index): Label => ({
    href: `/orgs/${orgId}/labels/${index + 1}`,
    key,
    value,
    deleted: false,
    external_data_set: null,
    external_data_reference: null,
    created_at: CREATED_AT,
    updated_at: CREATED_AT,
    created_by: { href: '/users/1' },
    updated_by: { href: '/users/1' },
    caps: ['write'],
  }))
  const byPair = new Map(labels.map((label) => [`${label.key}=${label.value}`, label]))
  return {
    labels,
    find: (key, value) => {
      const label = byPair.get(`${key}=${value}`)
      if (label === undefined) throw new RangeError(`the estate has no label ${key}=${value}`)
      return label
    },
  }
}
