import type { ProviderRanges } from '../../domain/traffic/providers/read-ranges.js'

export type CatalogEntry = Pick<ProviderRanges, 'provider' | 'confidence' | 'complete'>

/**
 * The providers of T14, from the most specific name to the least specific: a block that two providers publish belongs
 * to the first. `complete` says whether the sources list every address of the provider. It is false if
 *
 * - the vendor publishes no addresses, and only the announcements of its own networks are known (box, dropbox, workday);
 * - some services are published elsewhere, only by name, or not at all (atlassian, salesforce, microsoft365…);
 * - only whole blocks are included (azure-hosted).
 */
export const CATALOG: readonly CatalogEntry[] = [
  { provider: 'anthropic', confidence: 'likely', complete: true },
  { provider: 'atlassian', confidence: 'likely', complete: false },
  { provider: 'box', confidence: 'likely', complete: false },
  { provider: 'dropbox', confidence: 'likely', complete: false },
  { provider: 'github', confidence: 'likely', complete: true },
  { provider: 'salesforce', confidence: 'likely', complete: false },
  { provider: 'workday', confidence: 'likely', complete: false },
  { provider: 'zoom', confidence: 'likely', complete: true },
  { provider: 'microsoft365-exchange', confidence: 'ambiguous', complete: false },
  { provider: 'microsoft365-sharepoint', confidence: 'ambiguous', complete: false },
  { provider: 'microsoft365-skype', confidence: 'ambiguous', complete: false },
  { provider: 'microsoft365', confidence: 'ambiguous', complete: false },
  { provider: 'aws-api_gateway', confidence: 'ambiguous', complete: true },
  { provider: 'aws-route53_healthchecks', confidence: 'ambiguous', complete: true },
  { provider: 'aws-s3', confidence: 'ambiguous', complete: true },
  { provider: 'aws-cloudfront', confidence: 'ambiguous', complete: true },
  { provider: 'cloudflare-fronted', confidence: 'ambiguous', complete: true },
  { provider: 'fastly', confidence: 'ambiguous', complete: true },
  { provider: 'google-cloud', confidence: 'ambiguous', complete: true },
  { provider: 'google-services', confidence: 'ambiguous', complete: true },
  { provider: 'azure-hosted', confidence: 'ambiguous', complete: false },
]
