/** How far an attribution goes: `likely` in ranges of the vendor alone, `ambiguous` where a cloud or a CDN serves anybody (T14). */
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
  /** Whether the sources claim to list every address of this provider. An address outside a partial list may still be its. */
  complete: boolean
  sources: readonly ProviderSource[]
  /** Canonical CIDRs without host bits, IPv4 before IPv6, in ascending order; none lies inside another of the same provider. */
  ranges: readonly string[]
}
