import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * How reliable an attribution is: `likely` if only the vendor uses the range, `ambiguous` if it belongs to a cloud or
 * CDN that serves many customers.
 */
export type ProviderConfidence = 'likely' | 'ambiguous'

/** The source of a fact: the page or feed, and the day (YYYY-MM-DD) on which it was valid. */
export interface ProviderSource {
  url: string
  asOf: string
  /** Which part of the source was used, if that is not obvious. */
  note?: string
}

export interface ProviderRanges {
  /** The name that findings carry, for example `cloudflare-fronted`. */
  provider: string
  confidence: ProviderConfidence
  /**
   * True if the sources claim to list every address of this provider. If false, an address outside the ranges may still
   * belong to it.
   */
  complete: boolean
  sources: readonly ProviderSource[]
  /**
   * Canonical CIDRs without host bits: IPv4 before IPv6, in ascending order, none inside another of the same provider.
   */
  ranges: readonly string[]
}

/** The path of the table below the source folder or dist. The file is written by `node --import tsx scripts/provider-ranges.ts`. */
export const PROVIDER_RANGES_FILE = 'domain/traffic/providers/provider-ranges.json'

/**
 * Reads the shipped table. It looks for the file upwards from this module, because the code may run from the sources,
 * from dist or from a bundle.
 * @throws {Error} if the file does not exist.
 */
export function readProviderRanges(): readonly ProviderRanges[] {
  const start = dirname(fileURLToPath(import.meta.url))
  for (let folder = start; ; folder = dirname(folder)) {
    try {
      return JSON.parse(readFileSync(join(folder, PROVIDER_RANGES_FILE), 'utf8')) as ProviderRanges[]
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || folder === dirname(folder)) throw error
    }
  }
}
