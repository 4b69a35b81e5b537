/** Protocol versions this server speaks, newest first. */
export const SUPPORTED_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26'] as const
export type ProtocolVersion = (typeof SUPPORTED_VERSIONS)[number]

export const LATEST_VERSION: ProtocolVersion = SUPPORTED_VERSIONS[0]

/** The only version with JSON-RPC batches, and the one an HTTP request without `MCP-Protocol-Version` is taken for. */
export const BATCH_VERSION: ProtocolVersion = '2025-03-26'

export const isSupported = (version: string): version is ProtocolVersion =>
  (SUPPORTED_VERSIONS as readonly string[]).includes(version)

/** MCP lifecycle, version negotiation: the version asked for when we have it, else our newest. Never an error. */
export const negotiate = (asked: string): ProtocolVersion => (isSupported(asked) ? asked : LATEST_VERSION)
