/**
 * The domains in which CDNs and clouds name their own machines. A name in such a domain shows who owns the network, but
 * not which service runs there.
 */
const OWN_DOMAINS = [
  'akamai.net',
  'akamaiedge.net',
  'akamaihd.net',
  'akamaized.net',
  'edgekey.net',
  'edgesuite.net',
  'amazonaws.com',
  'awsglobalaccelerator.com',
  'cloudfront.net',
  'azureedge.net',
  'azurefd.net',
  'cloudapp.azure.com',
  'cloudapp.net',
  'trafficmanager.net',
  'a-msedge.net',
  't-msedge.net',
  'cdn.cloudflare.net',
  'cloudflare.net',
  'fastly.net',
  'fastlylb.net',
  '1e100.net',
  'googleusercontent.com',
  'b-cdn.net',
  'cdn77.org',
  'incapdns.net',
  'llnwd.net',
] as const

/** Returns true if a domain name is one that a CDN or cloud gives to its own machines. */
export function isProviderName(fqdn: string): boolean {
  const name = fqdn.toLowerCase().replace(/\.$/, '')
  return OWN_DOMAINS.some((domain) => name === domain || name.endsWith(`.${domain}`))
}
