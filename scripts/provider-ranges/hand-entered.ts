import type { Claim } from './build-table.js'

/**
 * The facts that no feed contains. They come from pages that are written for people or, for vendors that publish no
 * addresses, from the announcements of the vendors' own networks. Update `asOf` together with the ranges.
 */
export const HAND_ENTERED: readonly Claim[] = [
  {
    provider: 'anthropic',
    url: 'https://platform.claude.com/docs/en/api/ip-addresses',
    asOf: '2026-11-21',
    ranges: blocks('160.79.104.0/21 2607:6bc0::/48'),
  },
  {
    // These are all blocks of /17 or larger in AzureCloud and the other service tags that msft-public-ips.csv lacked.
    // Microsoft rarely updates this file.
    provider: 'azure-hosted',
    url: 'https://www.microsoft.com/en-us/download/details.aspx?id=56519',
    asOf: '2026-06-14',
    note: 'blocks of /17 and larger',
    ranges: blocks(`
      4.144.0.0/12 9.141.0.0/17 9.160.0.0/17 9.163.0.0/16 9.169.0.0/16 9.205.0.0/16 9.223.0.0/16 9.234.0.0/15
      48.192.0.0/16 48.193.0.0/17 48.194.0.0/15 48.196.0.0/14 48.200.0.0/13 48.209.0.0/16 48.210.0.0/15 48.214.0.0/15
      48.216.0.0/14 48.220.0.0/17 48.221.0.0/16 48.222.0.0/15 50.85.0.0/16 51.56.0.0/15 51.58.0.0/16 51.59.0.0/17
      64.236.0.0/16 69.15.0.0/16 74.7.0.0/16 128.24.0.0/16 128.203.0.0/16 128.251.0.0/16 130.33.0.0/16 130.107.0.0/16
      130.131.0.0/16 130.213.0.0/16 131.163.0.0/17 131.189.0.0/16 132.196.0.0/16 134.33.0.0/16 134.112.0.0/16
      134.138.0.0/16 134.149.0.0/16 135.13.0.0/16 135.119.0.0/16 135.171.0.0/16 135.220.0.0/16 135.222.0.0/16
      145.132.0.0/16 145.133.0.0/17 145.190.128.0/17 145.191.0.0/16 172.192.0.0/14 172.196.0.0/17 172.197.0.0/16
      172.198.0.0/15
    `),
  },
  {
    provider: 'box',
    url: 'https://www.routeviews.org/',
    note: 'announced by AS33011 (Box)',
    asOf: '2026-06-17',
    ranges: blocks('74.112.184.0/24 107.152.16.0/20 2402:f2c0::/32'),
  },
  {
    provider: 'dropbox',
    url: 'https://www.routeviews.org/',
    note: 'announced by AS19679 and AS393874 (Dropbox)',
    asOf: '2026-06-17',
    ranges: blocks(`
      45.58.64.0/20 108.160.160.0/20 162.125.0.0/16 185.45.8.0/22 192.189.200.0/23 2620:100:6000::/40 2620:11f:2000::/44
    `),
  },
  {
    // These are the vendor's own data centres. The services on Hyperforce are in the vendor's feed.
    provider: 'salesforce',
    url: 'https://help.salesforce.com/s/articleView?id=000384438&type=1',
    note: 'those that AS14340 (Salesforce) announces',
    asOf: '2026-06-17',
    ranges: blocks(`
      13.108.0.0/14 66.231.80.0/20 68.232.192.0/20 85.222.128.0/19 96.43.144.0/20 101.53.160.0/19 104.161.128.0/18
      128.17.0.0/16 128.245.0.0/16 136.146.0.0/15 159.92.0.0/16 160.8.0.0/16 161.32.64.0/18 161.32.128.0/17
      161.71.0.0/16 163.76.128.0/17 163.79.128.0/17 182.50.76.0/22 185.79.140.0/22 198.245.80.0/20 199.122.120.0/21
      202.129.242.0/23 204.14.232.0/21 2401:ce80::/32 2605:6180::/32 2a03:5d60::/32
    `),
  },
  {
    provider: 'workday',
    url: 'https://www.routeviews.org/',
    note: 'announced by AS18465, AS27515, AS139636, AS198301 and AS200451 (Workday)',
    asOf: '2026-06-17',
    ranges: blocks(`
      37.0.0.0/21 62.233.20.0/23 74.119.132.0/23 103.142.228.0/23 209.177.160.0/21 209.177.168.0/22 209.177.173.0/24
      209.177.174.0/23
    `),
  },
]

function blocks(text: string): string[] {
  return text.trim().split(/\s+/)
}
