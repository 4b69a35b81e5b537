import { randomUUID } from 'node:crypto'
import {
  parseAtlassian,
  parseAws,
  parseFastly,
  parseGitHub,
  parseGoogle,
  parseLines,
  parseMicrosoft365,
  parseMicrosoftCsv,
  parseSalesforce,
  type FeedFacts,
} from './parse-feeds.js'

export interface Feed {
  /** The name of the feed's file in a directory of feeds. */
  file: string
  /** The publisher's URL, which the table gives as the source. */
  url: string
  /** Returns a query that is appended to `url`; absent if `url` alone is enough. */
  query?: () => string
  parse: (text: string) => FeedFacts
}

/** The machine-readable feeds of the publishers. */
export const FEEDS: readonly Feed[] = [
  {
    file: 'aws-ip-ranges.json',
    url: 'https://ip-ranges.amazonaws.com/ip-ranges.json',
    parse: parseAws({
      API_GATEWAY: 'aws-api_gateway',
      CLOUDFRONT: 'aws-cloudfront',
      ROUTE53_HEALTHCHECKS: 'aws-route53_healthchecks',
      S3: 'aws-s3',
    }),
  },
  {
    file: 'atlassian.json',
    url: 'https://ip-ranges.atlassian.com/',
    parse: parseAtlassian('atlassian'),
  },
  {
    file: 'cloudflare-v4.txt',
    url: 'https://www.cloudflare.com/ips-v4',
    parse: parseLines('cloudflare-fronted'),
  },
  {
    file: 'cloudflare-v6.txt',
    url: 'https://www.cloudflare.com/ips-v6',
    parse: parseLines('cloudflare-fronted'),
  },
  {
    file: 'fastly.json',
    url: 'https://api.fastly.com/public-ip-list',
    parse: parseFastly('fastly'),
  },
  {
    file: 'github-meta.json',
    url: 'https://api.github.com/meta',
    parse: parseGitHub('github'),
  },
  {
    file: 'google-cloud.json',
    url: 'https://www.gstatic.com/ipranges/cloud.json',
    parse: parseGoogle('google-cloud'),
  },
  {
    file: 'google-goog.json',
    url: 'https://www.gstatic.com/ipranges/goog.json',
    parse: parseGoogle('google-services'),
  },
  {
    // This is Microsoft's own address space rather than the service tags of Azure: a few hundred whole blocks instead
    // of thousands of fragments, at a stable address (the address of the tags changes every week).
    file: 'msft-public-ips.csv',
    url: 'https://download.microsoft.com/download/B/2/A/B2AB28E1-DAE1-44E8-A867-4987FE089EBE/msft-public-ips.csv',
    parse: parseMicrosoftCsv('azure-hosted'),
  },
  {
    file: 'microsoft365-endpoints.json',
    url: 'https://endpoints.office.com/endpoints/worldwide',
    query: () => `?clientrequestid=${randomUUID()}`,
    parse: parseMicrosoft365({
      Common: 'microsoft365',
      Exchange: 'microsoft365-exchange',
      SharePoint: 'microsoft365-sharepoint',
      Skype: 'microsoft365-skype',
    }),
  },
  {
    file: 'salesforce-ip-ranges.json',
    url: 'https://ip-ranges.salesforce.com/ip-ranges.json',
    parse: parseSalesforce('salesforce'),
  },
  {
    file: 'zoom.txt',
    url: 'https://assets.zoom.us/docs/ipranges/Zoom.txt',
    parse: parseLines('zoom'),
  },
]
