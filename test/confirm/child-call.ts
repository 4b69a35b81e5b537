import type { ConfirmedCall } from '../../schemas/confirmations.js'

/** What the processes of these tests redeem tokens for. */
export const CHILD_CALL: ConfirmedCall = {
  owner: { iss: 'https://id.example.test', sub: 'ann' },
  tool: 'provision-policy',
  paramsHash: 'c'.repeat(64),
}

/** The digest of what its caller was shown. */
export const SHOWN = 'what was shown'

export const childConfig = {
  config: { hmacKey: Buffer.alloc(32, 5), ttlSeconds: 120 },
  audience: 'https://mcp.example.test',
}
