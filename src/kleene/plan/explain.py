def explain_text(plan):
    return ""


def explain_dot(q):
    return ""
