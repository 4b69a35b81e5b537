/**
 * The two ways in which a request says what its sender speaks (MCP 2026-07-28, versioning, "Terminology"): once for a connection, by
 * `initialize`, or in the `_meta` of each request.
 */
export type Era = 'legacy' | 'modern'

/** Revisions with a handshake, newest first. */
export const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26'] as const
export type LegacyVersion = (typeof LEGACY_VERSIONS)[number]

/** The revision without one. */
export const MODERN_VERSION = '2026-07-28'

/** All that this server speaks, newest first. */
export const SUPPORTED_VERSIONS: readonly string[] = [MODERN_VERSION, ...LEGACY_VERSIONS]

const LATEST_LEGACY: LegacyVersion = LEGACY_VERSIONS[0]

/** The only version with JSON-RPC batches, and the one an HTTP request without `MCP-Protocol-Version` is taken for. */
export const BATCH_VERSION: LegacyVersion = '2025-03-26'

export const isLegacy = (version: unknown): version is LegacyVersion =>
  (LEGACY_VERSIONS as readonly unknown[]).includes(version)

/** MCP lifecycle, version negotiation: the version asked for when it has a handshake that we have, otherwise our newest of these. Never an error. */
export const negotiate = (asked: string): LegacyVersion => (isLegacy(asked) ? asked : LATEST_LEGACY)

/** Of `_meta`: which revision the request is of. */
export const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'

/** What the `_meta` of a message's params says of its revision; undefined where it says nothing, as before 2026-07-28. */
export function claimedVersion(params: unknown): unknown {
  const meta = isObject(params) ? params._meta : undefined
  return isObject(meta) ? meta[VERSION_KEY] : undefined
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
