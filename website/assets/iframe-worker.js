// Search runs in a worker, which browsers refuse to pages that were opened as files. There, a frame does its work.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const base = new URL(address, location.href);
      const frame = (this.frame = document.createElement("iframe"));
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = (this.inside = frame.contentWindow);
      inside.postMessage = (data) => this.dispatch(new MessageEvent("message", { data }));
      inside.importScripts = (...addresses) =>
        addresses.reduce(
          (before, next) =>
            before.then(
              () =>
                new Promise((resolve, reject) => {
                  const script = inside.document.createElement("script");
                  script.src = new URL(next, base).href;
                  script.onload = resolve;
                  script.onerror = reject;
                  inside.document.body.appendChild(script);
                })
            ),
          Promise.resolve()
        );
      this.ready = inside.importScripts(base.href);
    }
    dispatch(event) {
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
