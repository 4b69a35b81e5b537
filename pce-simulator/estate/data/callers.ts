const list = (text: string) => text.split(' ')

/**
 * The applications that each application calls within its environment. If a called application does not exist in that
 * environment, the one in prod is called.
 */
export const CALLS: Readonly<Record<string, readonly string[]>> = {
  payments: list('identity ledger fraud-detection notifications'),
  ordering: list('payments inventory pricing notifications shipping'),
  'web-shop': list('ordering payments catalog search identity recommendations'),
  identity: list('notifications'),
  billing: list('payments ledger tax-engine document-archive'),
  ledger: list('data-warehouse'),
  crm: list('identity marketing document-archive'),
  erp: list('inventory ledger hr-portal treasury'),
  inventory: list('warehouse notifications'),
  'data-warehouse': list('erp crm ordering'),
  'hr-portal': list('identity pay'),
  pay: list('payments hr-portal treasury'),
  'fraud-detection': list('data-warehouse'),
  notifications: list('mail-relay'),
  pricing: list('inventory tax-engine'),
  shipping: list('notifications'),
  catalog: list('search media'),
  recommendations: list('catalog'),
  loyalty: list('payments crm identity'),
  'mobile-backend': list('ordering payments identity loyalty'),
  'customer-portal': list('identity billing payments ticketing'),
  'partner-gateway': list('ordering inventory shipping'),
  treasury: list('ledger'),
  warehouse: list('inventory'),
  'crm-analytics': list('crm data-warehouse'),
  marketing: list('crm mail-relay'),
  'contract-management': list('document-archive identity'),
  reporting: list('data-warehouse identity'),
  ticketing: list('identity mail-relay'),
  intranet: list('identity'),
  wiki: list('identity'),
  'source-control': list('identity'),
  'ci-build': list('source-control artifact-registry'),
  'call-center': list('crm ticketing'),
}

/** The internet host names that applications call (see destinations.ts). */
export const INTERNET_CALLS: Readonly<Record<string, readonly string[]>> = {
  payments: list('api.cardnetwork.example settlement.bankhub.example'),
  'web-shop': list('cdn.shopassets.example www.google-analytics.com'),
  identity: list('login.microsoftonline.com'),
  ledger: list('telemetry.vendorcloud.example'),
  crm: list('login.salesforce.com'),
  'data-warehouse': list('s3.eu-central-1.amazonaws.com'),
  pay: list('transfer.taxoffice.example'),
  'fraud-detection': list('api.riskscore.example'),
  notifications: list('api.pushgate.example fcm.googleapis.com'),
  shipping: list('api.parcelhub.example'),
  recommendations: list('api.anthropic.com'),
  'mobile-backend': list('api.push.apple.com fcm.googleapis.com'),
  'partner-gateway': list('edi.logistics-partner.example'),
  treasury: list('settlement.bankhub.example'),
  marketing: list('api.mailblast.example'),
  media: list('s3.eu-central-1.amazonaws.com'),
  'ci-build': list('api.github.com packages.buildmirror.example'),
  'artifact-registry': list('packages.buildmirror.example'),
  'mail-relay': list('outlook.office365.com'),
}

/** The applications that are reached from anywhere on the internet. */
export const PUBLIC_APPLICATIONS = list('web-shop mobile-backend customer-portal partner-gateway identity')

/** The applications that employees open on their laptops. */
export const EMPLOYEE_APPLICATIONS = list(
  'identity billing crm erp hr-portal marketing document-archive contract-management reporting ticketing intranet wiki source-control artifact-registry call-center',
)

/** The applications that are used from branch offices, whose machines the PCE does not know. */
export const BRANCH_APPLICATIONS = list('ordering erp shipping warehouse intranet')
