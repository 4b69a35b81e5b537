import { ANY_IP_LIST_NAME } from '../../../schemas/pce/words.js'

export interface IpListSpec {
  name: string
  description: string
  /**
   * The address ranges of the list: each is `from`, `from-to` or a network. A range with a leading `!` is excluded from
   * the list.
   */
  ranges: readonly string[]
  fqdns?: readonly string[]
}

export const BRANCH_NETWORK = '10.60'
export const INTERNET_LIST = 'Internet'
export const BRANCH_LIST = 'Branch offices'

/** The IP lists in the order of their ids. The first one is built in. */
export const IP_LISTS: readonly IpListSpec[] = [
  { name: ANY_IP_LIST_NAME, description: '', ranges: ['0.0.0.0/0', '::/0'] },
  {
    name: INTERNET_LIST,
    description: 'Everything that is not ours',
    ranges: [
      '0.0.0.0/0',
      '::/0',
      '!10.0.0.0/8',
      '!172.16.0.0/12',
      '!192.168.0.0/16',
      '!fc00::/7',
      '!224.0.0.0/4',
      '!255.255.255.255',
    ],
  },
  {
    name: 'Corporate networks',
    description: 'RFC 1918 space',
    ranges: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'],
  },
  {
    name: BRANCH_LIST,
    description: 'Sites without servers',
    ranges: [`${BRANCH_NETWORK}.0.0/16`, `!${BRANCH_NETWORK}.9.0-${BRANCH_NETWORK}.9.127`],
  },
  {
    name: 'Branch offices - guest Wi-Fi',
    description: 'Never into the data centre',
    ranges: [`${BRANCH_NETWORK}.9.0/24`],
  },
  { name: 'Partner: card network', description: '', ranges: ['203.0.113.0/27'], fqdns: ['*.cardnetwork.example'] },
  {
    name: 'Partner: banks',
    description: '',
    ranges: ['203.0.113.32-203.0.113.63'],
    fqdns: ['settlement.bankhub.example'],
  },
  {
    name: 'Partner: logistics',
    description: '',
    ranges: ['198.51.100.16/28'],
    fqdns: ['*.logistics-partner.example', '*.parcelhub.example'],
  },
  {
    name: 'SaaS: Microsoft 365',
    description: '',
    ranges: ['52.96.0.0/14', '13.107.128.0/22'],
    fqdns: ['*.office365.com', '*.microsoftonline.com'],
  },
  { name: 'SaaS: GitHub', description: '', ranges: ['140.82.112.0/20'], fqdns: ['github.com', '*.github.com'] },
  { name: 'Package mirrors', description: '', ranges: [], fqdns: ['*.buildmirror.example'] },
]
