import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** How far an attribution goes: `likely` in ranges of the vendor alone, `ambiguous` where a cloud or a CDN serves anyone. */
export type ProviderConfidence = 'likely' | 'ambiguous'

/** Where facts come from: the page or feed, and the day (YYYY-MM-DD) for which it was taken to hold. */
export interface ProviderSource {
  url: string
  asOf: string
  /** What of the source was taken, where the page does not say it by itself. */
  note?: string
}

export interface ProviderRanges {
  /** The name findings carry, for example `cloudflare-fronted`. */
  provider: string
  confidence: ProviderConfidence
  /** Whether the sources claim to list every address of this provider. A partial list says nothing about addresses outside it. */
  complete: boolean
  sources: readonly ProviderSource[]
  /** Canonical CIDRs without host bits, IPv4 before IPv6, in ascending order; none lies inside another of the same provider. */
  ranges: readonly string[]
}

/** Where the table is, below the sources or below dist. Written by `npm run providers`. */
export const PROVIDER_RANGES_FILE = 'domain/traffic/providers/provider-ranges.json'

/**
 * The shipped table. Looks for its file upwards from this code, which runs from the sources, from dist and inside a bundle. Throws
 * Error when the file is not there.
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
