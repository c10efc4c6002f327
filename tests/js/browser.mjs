// A browser without script, at the pages of the authorization server: cookies, and forms with their hidden fields.
export function browser(issuer, here) {
  const cookies = new Map()

  async function open(url, form) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
    const headers = { cookie, ...(form && { origin: issuer }) }
    const response = await here(url, { method: form ? 'POST' : 'GET', headers, body: form, redirect: 'manual' })
    for (const set of response.headers.getSetCookie()) {
      const [name, value] = set.split(';')[0].split(/=(.*)/)
      cookies.set(name, value)
    }
    return response
  }

  async function submit(url, page, action, fields) {
    const form = page.match(new RegExp(`<form method="post" action="${action}">([^]*?)</form>`))
    const hidden = [...form[1].matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)]
    const unescaped = (value) => value.replaceAll('&quot;', '"').replaceAll('&#x27;', "'").replaceAll('&amp;', '&')
    const body = new URLSearchParams(hidden.map(([, name, value]) => [name, unescaped(value)]))
    for (const [name, value] of Object.entries(fields)) body.set(name, value)
    const place = new URL(action, url)
    const response = await open(place, body)
    const next = response.headers.get('location')
    return { page: await response.text(), place: next && new URL(next, place) }
  }

  // What the client is led back with, when the user signs in if need be, and decides.
  async function authorize(url, user, decision = 'allow') {
    let response = await open(url)
    if (response.status === 303) return new URL(response.headers.get('location'))
    let page = await response.text()
    if (page.includes('action="login"')) {
      const { place } = await submit(url, page, 'login', user)
      response = await open((url = place))
      page = await response.text()
    }
    return (await submit(url, page, 'authorize', { decision })).place
  }

  // Types the code of a device, and allows it.
  async function connect(url, code) {
    const typed = await submit(url, await (await open(url)).text(), 'device', { user_code: code })
    return (await submit(url, typed.page, 'device', { decision: 'allow' })).page
  }

  return { authorize, connect }
}
