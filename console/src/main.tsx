import './style.css'
import { type ComponentType, render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ask } from './api'
import { Column, PAGES } from './parts/column'
import { Mark } from './parts/mark'
import { Help, Palette } from './parts/palette'
import { Loading, Problem, Said } from './parts/ui'
import { openPeople } from './parts/view-as'
import { go, usePlace } from './router'
import { current, session } from './session'
import { loadModel, shared } from './shell'
import { useStore } from './store'
import { applyTheme } from './theme'
import type { Boot } from './types'

type Page = ComponentType<{ rest: string[] }>

const loads: Record<string, () => Promise<Page>> = {
  request: () => import('./pages/request').then((module) => module.RequestPage),
  data: () => import('./pages/data').then((module) => module.DataPage),
  live: () => import('./pages/live').then((module) => module.LivePage),
  model: () => import('./pages/model').then((module) => module.ModelPage),
  reference: () => import('./pages/reference').then((module) => module.ReferencePage),
  rules: () => import('./pages/rules').then((module) => module.RulesPage),
  activity: () => import('./pages/activity').then((module) => module.ActivityPage),
  admin: () => import('./pages/admin').then((module) => module.AdminPage),
}

function Body() {
  const place = usePlace()
  const { model, error } = useStore(shared)
  const { as } = useStore(current)
  const [loaded, setLoaded] = useState<{ name: string; Page: Page } | null>(null)
  const [failed, setFailed] = useState<unknown>(null)
  const name = place.page || 'request'
  useEffect(() => {
    const load = loads[name]
    setFailed(null)
    if (!load) return
    load().then(
      (Page) => setLoaded({ name, Page }),
      (reason) => setFailed(reason),
    )
    document.title = `${PAGES.find((page) => page.id === name)?.title ?? 'Console'} · ${shared.get().boot?.title ?? 'Diptych'}`
  }, [name])
  if (!loads[name]) return <Problem error={new Error(`There is no page “${name}”.`)} retry={() => go('request')} />
  if (failed) return <Problem error={failed} retry={() => location.reload()} />
  if (error) return <Problem error={error} retry={() => void loadModel()} />
  if (!model || loaded?.name !== name) return <Loading />
  return (
    <>
      {!model.resources.length && !as && <NoUser />}
      <loaded.Page key={`${name}/${place.rest.join('/')}/${as}`} rest={place.rest} />
    </>
  )
}

/** In `dev`, the link of the terminal signs in an admin who is no user: rules may show that one nothing at all. */
function NoUser() {
  const { boot } = useStore(shared)
  if (boot?.mode !== 'dev') return null
  return (
    <section class="notice" aria-label="You see nothing yet">
      <span class="grow">
        <b>You see nothing yet.</b> You came by the link of the terminal, and are no user of this service; its rules show rows to users only. View as one of them, or create the first.
      </span>
      <button class="strong" onClick={openPeople}>
        View as a user
      </button>
    </section>
  )
}

function SignIn() {
  const { boot } = useStore(shared)
  const { error } = useStore(current)
  const dev = boot?.mode === 'dev'
  return (
    <main class="sign-in" id="main">
      <div class="card">
        <h1 class="brand">
          <Mark />
          {boot?.title ?? 'Diptych'}
        </h1>
        {error && <Problem error={new Error(error)} />}
        {dev ? (
          <p>
            The terminal that runs the service shows a link with a code for one use. Open that link, and you are signed in as the sample admin.
          </p>
        ) : (
          <>
            <p>The console does what you may do, and nothing more. Sign in with your account of this service.</p>
            <button class="strong" onClick={() => void session.signIn()}>
              Sign in
            </button>
          </>
        )}
        <button class="quiet" onClick={() => (current.set((now) => ({ ...now, state: 'in', name: null })), void loadModel())}>
          Look around without signing in
        </button>
      </div>
    </main>
  )
}

function App() {
  const { state, as } = useStore(current)
  const { boot } = useStore(shared)
  useEffect(() => {
    if (state === 'in') void loadModel()
  }, [state, as])
  if (state === 'starting' || !boot) return <Loading what="Opening the console…" />
  if (state === 'out') return <SignIn />
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <Column />
      <main id="main" tabIndex={-1}>
        <Body />
      </main>
      <Palette />
      <Help />
      <Said />
    </div>
  )
}

async function begin(): Promise<void> {
  applyTheme()
  const root = document.getElementById('root')
  if (!root) return
  try {
    const boot = await ask<Boot>('GET', '/console/api/boot')
    shared.set((now) => ({ ...now, boot }))
    render(<App />, root)
    await session.start(boot)
  } catch (error) {
    render(<main class="sign-in"><Problem error={error} retry={() => location.reload()} /></main>, root)
  }
}

void begin()
