/**
 * The two eras of the protocol (MCP 2026-07-28, versioning, "Terminology"). In the `legacy` era, a client names its
 * revision once for a connection, with `initialize`; in the `modern` era, it does so in the `_meta` of every request.
 */
export type Era = 'legacy' | 'modern'

/** The revisions in which a connection begins with `initialize`, newest first. */
export const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26'] as const
export type LegacyVersion = (typeof LEGACY_VERSIONS)[number]

/** The revision without `initialize`: each request names its revision itself. */
export const MODERN_VERSION = '2026-07-28'

/** All revisions that this server supports, newest first. */
export const SUPPORTED_VERSIONS: readonly string[] = [MODERN_VERSION, ...LEGACY_VERSIONS]

const LATEST_LEGACY: LegacyVersion = LEGACY_VERSIONS[0]

/**
 * The only revision with JSON-RPC batches. It is also the revision that is assumed for an HTTP request without
 * `MCP-Protocol-Version`.
 */
export const BATCH_VERSION: LegacyVersion = '2025-03-26'

export const isLegacy = (version: unknown): version is LegacyVersion =>
  (LEGACY_VERSIONS as readonly unknown[]).includes(version)

/**
 * Negotiates the revision for a client that sends `initialize` (MCP lifecycle). Returns the requested revision if this
 * server supports it and it has `initialize`; otherwise, returns the newest supported one that has. Never fails.
 */
export const negotiate = (asked: string): LegacyVersion => (isLegacy(asked) ? asked : LATEST_LEGACY)

/** The key in `_meta` that names the revision of a request. */
export const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'

/**
 * Returns the revision that a message names in its `_meta`. Returns undefined if it names none, which is usual before
 * 2026-07-28.
 */
export function claimedVersion(params: unknown): unknown {
  const meta = isObject(params) ? params._meta : undefined
  return isObject(meta) ? meta[VERSION_KEY] : undefined
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
