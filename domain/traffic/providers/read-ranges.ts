import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * How reliably an address in a range can be attributed to the provider: `likely` if only the provider itself uses the
 * range, `ambiguous` if the range belongs to a cloud or CDN that serves many customers.
 */
export type ProviderConfidence = 'likely' | 'ambiguous'

/** The source of address ranges: a page or feed, and the day (YYYY-MM-DD) on which its ranges were valid. */
export interface ProviderSource {
  url: string
  asOf: string
  /** The part of the source from which the ranges were taken, if it is not obvious. */
  note?: string
}

export interface ProviderRanges {
  /** The name of the provider in findings, for example `cloudflare-fronted`. */
  provider: string
  confidence: ProviderConfidence
  /**
   * True if the sources claim to list every address of this provider. If false, an address outside the ranges may still
   * belong to the provider.
   */
  complete: boolean
  sources: readonly ProviderSource[]
  /**
   * Canonical CIDRs without host bits: IPv4 before IPv6, in ascending order. No range is inside another range of the
   * same provider.
   */
  ranges: readonly string[]
}

/**
 * The path of the table of ranges, relative to the source folder or dist. The command `node --import tsx
 * scripts/provider-ranges.ts` writes this file.
 */
export const PROVIDER_RANGES_FILE = 'domain/traffic/providers/provider-ranges.json'

/**
 * Reads the shipped table of ranges. The file is searched for in the folder of this module and in all parent folders,
 * because the code may run from the sources, from dist or from a bundle.
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
