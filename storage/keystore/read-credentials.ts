import type { PceCredentials } from '../../schemas/credentials.js'

const FIELDS = {
  host: 'string',
  port: 'number',
  orgId: 'number',
  apiKey: 'string',
  apiSecret: 'string',
  tlsVerify: 'boolean',
} as const satisfies Partial<Record<keyof PceCredentials, string>>

/** What was sealed, when it has the shape of this version. Throws Error, never with a value. */
export function readCredentials(value: unknown): PceCredentials {
  const found = value as Record<string, unknown> | null
  for (const [field, type] of Object.entries(FIELDS)) {
    if (typeof found?.[field] !== type) throw new Error(`the sealed credentials have no ${field}`)
  }
  return value as PceCredentials
}
